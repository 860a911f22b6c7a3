"""Steps as they are beside steps as they were forecast, while a run goes on, seen from home.

The machine that launches a run gets the records of all hosts as they grow. So it can tell whose
link has become slower, which no worker can: each knows the bytes of its own host alone. Events come
in, a line goes out when something has changed and holds. Memory is bounded.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from dragoman.diagnosis.phrasing import seconds
from dragoman.diagnosis.run.steps import StepSplit, split_steps
from dragoman.diagnosis.speed.capped import WAYS, PortRates, busy, cap_of
from dragoman.diagnosis.speed.foreseen import (
    ABOUT,
    slower_in_words,
    slower_link,
    step_in_words,
)
from dragoman.telemetry.events import AttemptStarted, ForecastMade, SensorReading, Stamped, StepDone
from dragoman.training.observer import RankParts

WINDOW_STEPS = 10
WINDOW_S = 10.0
"""The steps of one judgement: at least so many, and so long."""
MOST_STEPS = 4000
MOST_READINGS = 600
HOLDS = 3
"""Judgements in a row that must agree, before a line is worth it."""
LEAST_SHARE = 0.1
"""Of the step: so much an excess has to be to be its cause."""

State: TypeAlias = Literal["as forecast", "network", "straggler", "computing"]


class LinkWatch:
    """Watches one attempt with the hosts that the forecast was made for."""

    def __init__(self, forecast: ForecastMade, interfaces: Mapping[str, str]) -> None:
        """`interfaces` are those that carry the traffic, by host."""
        self.forecast, self._interfaces = forecast, interfaces
        self._hosts: dict[int, str] = {}
        self._steps: dict[int, dict[int, RankParts]] = defaultdict(dict)
        self._window: deque[tuple[int, list[RankParts]]] = deque(maxlen=MOST_STEPS)
        self._window_s = 0.0
        self._readings: dict[str, deque[Mapping[str, float]]] = defaultdict(
            lambda: deque(maxlen=MOST_READINGS)
        )
        self._is_first = True
        self.state: State = "as forecast"
        """What was told last."""
        self._new: State = "as forecast"
        self._held = 0

    def take(self, rank: int, stamped: Stamped) -> str | None:
        """Takes one event of a rank; returns a line when there is something new to say."""
        match stamped.event:
            case AttemptStarted(host=host):
                self._hosts[rank] = host
            case SensorReading(values=values) if rank in self._hosts:
                self._readings[self._hosts[rank]].append(values)
            case StepDone() as done:
                return self._after_step(rank, done)
        return None

    def _after_step(self, rank: int, done: StepDone) -> str | None:
        parts = self._steps[done.step]
        parts[rank] = RankParts.of(done)
        if len(parts) < self.forecast.ranks:
            for old in [step for step in self._steps if step < done.step - MOST_STEPS]:
                del self._steps[old]  # of a rank whose records do not come
            return None
        del self._steps[done.step]
        if self._is_first:  # connections are made
            self._is_first = False
            self._readings.clear()
            return None
        self._window.append((done.step, [parts[number] for number in sorted(parts)]))
        self._window_s += done.step_s
        if len(self._window) < WINDOW_STEPS or self._window_s < WINDOW_S:
            return None
        line = self._judge()
        self._window.clear()
        self._window_s = 0.0
        self._readings.clear()
        return line

    def _judge(self) -> str | None:
        split = _mean_split(self._window)
        state = state_of(split, self.forecast)
        self._held = self._held + 1 if state == self._new else 1
        self._new = state
        if state == self.state or self._held < HOLDS:
            return None
        self.state = state
        return self._in_words(state, split)

    def _in_words(self, state: State, split: StepSplit) -> str:
        forecast = self.forecast
        takes = f"a step takes {seconds(split.step_s)}"
        if state == "as forecast":
            return f"{takes} again, as forecast: {step_in_words(forecast)}"
        beside = f"{takes}, and {step_in_words(forecast)} were forecast"
        if state == "network":
            slower = slower_link(cap_of(self._ports()), forecast)
            if slower:
                return f"{slower_in_words(slower)}; {beside}"
            waits, expected = seconds(split.network_s), seconds(forecast.exposed_s)
            return f"{beside}: it waits {waits} for the network, and {expected} were forecast"
        if state == "straggler":
            return f"{beside}: {seconds(split.straggling_s)} of it wait for the slowest worker"
        computes, expected = seconds(split.busy_s), seconds(forecast.compute_s)
        return f"{beside}: it computes for {computes}, and {expected} were forecast"

    def _ports(self) -> list[PortRates]:
        """Returns what passed the port of each host in the readings of the window."""
        found = []
        for host, interface in self._interfaces.items():
            readings = self._readings.get(host, ())
            peak = f"network/{interface}/{{}}_peak_bytes_per_s"
            bursts = {
                way: busy(np.array([r.get(peak.format(way), np.nan) for r in readings]))
                for way in WAYS
            }
            found.append(PortRates(host, {way: np.empty(0) for way in WAYS}, bursts))
        return found


def state_of(split: StepSplit, forecast: ForecastMade) -> State:
    """Returns whether steps are as forecast, or what makes them longer."""
    if not split.step_s > ABOUT * forecast.step_high_s:
        return "as forecast"
    excess: dict[State, float] = {
        "network": split.network_s - forecast.exposed_s,
        "straggler": split.straggling_s,
        "computing": split.busy_s - forecast.compute_s,
    }
    state = max(excess, key=lambda each: np.nan_to_num(excess[each]))
    return state if excess[state] > LEAST_SHARE * split.step_s else "as forecast"


def _mean_split(window: deque[tuple[int, list[RankParts]]]) -> StepSplit:
    numbers = np.array([number for number, _ in window])
    parts_s = np.array(
        [[[np.nan if p is None else p for p in rank] for rank in parts] for _, parts in window]
    ).transpose(2, 1, 0)
    named = {
        field.removesuffix("_s"): part
        for field, part in zip(RankParts._fields, parts_s, strict=True)
    }
    columns, _ = split_steps(numbers, named, named["ready"])
    return StepSplit(**{name: float(values.mean()) for name, values in columns.items()})
