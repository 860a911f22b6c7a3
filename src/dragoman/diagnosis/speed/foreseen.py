"""What was forecast before a run beside what happened. Facts come in, comparisons go out. Pure."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.findings import Figure
from dragoman.diagnosis.phrasing import bit_rate, instant, listed, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.capped import Cap
from dragoman.telemetry.events import ForecastMade
from dragoman.telemetry.read.tables import known

SLOWER = 0.75
"""Of the rate that was measured before the start: a link that passes less has become slower. What
a collective leaves unused of a link is less than the rest."""
ABOUT = 1.1
"""Times the interval of the forecast, that a mean step may be outside of it without a word."""


class Foreseen(NamedTuple):
    forecast: ForecastMade
    step_s: float
    """Mean of the usual steps of all attempts that it holds for. NaN: there is none."""
    steps: int

    @property
    def is_slower(self) -> bool:
        return self.step_s > ABOUT * self.forecast.step_high_s


class SlowerLink(NamedTuple):
    """A link that passes less than was measured before the start."""

    where: str
    """the link of node2, the way from node1 to node2, the network."""
    host: str
    """Whose it is; empty: that cannot be told."""
    now: float
    """Bytes a second."""
    before: float


def foreseen_of(run: RunFacts) -> Foreseen | None:
    """Returns the newest forecast, beside the steps that it was made for."""
    forecasts = run.forecasts
    if not forecasts:
        return None
    newest = forecasts[max(forecasts)]
    attempts = [n for n, each in forecasts.items() if is_for_the_same(each, newest)]
    steps = run.step_parts
    rows = np.isin(steps.attempt, attempts) & steps.usual if len(steps) else np.zeros(0, bool)
    taken_s = steps["step_s"][rows]
    return Foreseen(newest, float(taken_s.mean()) if len(taken_s) else math.nan, len(taken_s))


def is_for_the_same(one: ForecastMade, other: ForecastMade) -> bool:
    return (one.ranks, one.hosts) == (other.ranks, other.hosts)


def slower_link(cap: Cap | None, forecast: ForecastMade) -> SlowerLink | None:
    """Returns the place that passes less than was measured; None: none does, or nobody knows."""
    if cap is None or not cap.is_measured:
        return None
    sent, received = forecast.sent_bytes_per_s, forecast.received_bytes_per_s
    if cap.hosts and cap.is_sure:
        where, host = f"the link of {listed(list(cap.hosts))}", cap.hosts[0]
        before = _least([rates.get(name) for rates in (sent, received) for name in cap.hosts])
        host = host if len(cap.hosts) == 1 else ""
    elif cap.hop:
        where, host = f"the way from {cap.hop[0]} to {cap.hop[1]}", ""
        before = _least([sent.get(cap.hop[0]), received.get(cap.hop[1])])
    else:
        where, host = "the network", ""
        before = _least([*sent.values(), *received.values()])
    return SlowerLink(where, host, cap.rate, before) if cap.rate < SLOWER * before else None


def slower_in_words(slower: SlowerLink) -> str:
    """The link of node2 has become slower: it passes 94 Mbit/s, and before the start 940 Mbit/s
    were measured."""
    return (
        f"{slower.where} has become slower: it passes {bit_rate(slower.now)}, and before the start "
        f"{bit_rate(slower.before)} were measured"
    )


def step_in_words(forecast: ForecastMade) -> str:
    """2.1 s (1.9 s to 2.4 s)."""
    low, high = seconds(forecast.step_low_s), seconds(forecast.step_high_s)
    return f"{seconds(forecast.step_s)} ({low} to {high})"


def beside_forecast(foreseen: Foreseen | None) -> str:
    """Returns a sentence that sets the mean step beside its forecast; empty: there is none."""
    if foreseen is None or math.isnan(foreseen.step_s):
        return ""
    forecast = foreseen.forecast
    made = f"Before the start {step_in_words(forecast)} were forecast"
    if forecast.step_low_s <= foreseen.step_s <= forecast.step_high_s:
        return f"{made}, and it took {seconds(foreseen.step_s)}."
    way = "longer" if foreseen.step_s > forecast.step_high_s else "less"
    return f"{made}, and it took {way}: {seconds(foreseen.step_s)}."


def forecast_figures(foreseen: Foreseen | None, names: Mapping[str, str]) -> list[Figure]:
    """Returns what was forecast; `names`: field of the event -> name of the figure."""
    if foreseen is None:
        return []
    forecast = foreseen.forecast
    note = f"made before the start, from what was measured at {instant(forecast.checked_at)}"
    units = {"bytes_per_step": "bytes", "cost": forecast.currency}
    found = []
    for field, name in names.items():
        value = getattr(forecast, field)
        if value is not None:
            low, high = None, None
            if field == "step_s":
                low, high = forecast.step_low_s, forecast.step_high_s
            in_s = 3600 * value if field == "hours" else value
            found.append(Figure(name, in_s, units.get(field, "s"), low, high, note))
    return found


def _least(rates: list[float | None]) -> float:
    return min(known(rate for rate in rates if rate is not None), default=math.nan)
