"""One rank at this moment: the events of its file come in, its last steps and signs of life go out.

What is held is bounded: sums over two seconds each for the curves of the last minutes, and the last
steps.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dragoman.report.content import finite
from dragoman.report.curves import points
from dragoman.telemetry.clocks import Comparisons, Timeline
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    Evaluated,
    SensorReading,
    Stamped,
    StepDone,
)
from dragoman.telemetry.read.tables import merge_orders
from dragoman.watch.content import RankNow, RecentSteps

WINDOW_S = 600.0
BIN_S = 2.0
LAST_STEPS = 32
"""Of each rank: what its mean step is made of."""
MOST_CLOCKS = 200
_MOST_AT = 1e11
_BEATS = (StepDone, SensorReading, Evaluated, CheckpointSaved)


@dataclass
class StepBin:
    """The steps that ended within `BIN_S`."""

    number: int
    at: float = 0.0
    step: int = 0
    steps: int = 0
    seconds: float = 0.0
    losses: int = 0
    loss: float = 0.0

    def add(self, at: float, done: StepDone) -> None:
        self.at, self.step = at, done.step
        self.steps += 1
        self.seconds += done.step_s
        if math.isfinite(done.loss):
            self.losses += 1
            self.loss += done.loss

    @property
    def mean_loss(self) -> float:
        return self.loss / self.losses if self.losses else math.nan


@dataclass
class LiveRank:
    """What one file of events says so far."""

    wall_ahead_s: float
    start: AttemptStarted | None = None
    first_monotonic_at: float = math.inf
    last_monotonic_at: float = -math.inf
    beat_monotonic_at: float = 0.0
    """Of its last event of a kind that comes again and again."""
    last_at: float = 0.0
    read_at: float = math.inf
    """When its events were read last, on the watcher's clock: none of them can be younger."""
    stepped_at: float = 0.0
    longest_gap_s: float = 0.0
    seen_at: float | None = None
    """When the watcher saw it grow, on the watcher's clock; None: not since watching began."""
    end: AttemptEnded | None = None
    is_silent: bool = False
    steps: deque[StepDone] = field(default_factory=lambda: deque(maxlen=LAST_STEPS))
    bins: deque[StepBin] = field(default_factory=lambda: deque(maxlen=round(WINDOW_S / BIN_S)))
    clocks: deque[tuple[float, ClockOffset]] = field(
        default_factory=lambda: deque(maxlen=MOST_CLOCKS)
    )

    @property
    def step_s(self) -> float:
        return math.fsum(s.step_s for s in self.steps) / len(self.steps) if self.steps else math.nan

    def silent_s(self, now: float) -> float:
        """By the watcher's clock alone once it saw the file grow: another host's may differ."""
        last_at = min(self.last_at, self.read_at) if self.seen_at is None else self.seen_at
        return max(0.0, now - last_at)

    def note_clock(self, stamped: Stamped) -> None:
        """Notes what is needed to put the other events on one clock."""
        if isinstance(stamped.event, AttemptStarted):
            self.start = stamped.event
            self.wall_ahead_s = stamped.wall_at - stamped.monotonic_at
        elif isinstance(stamped.event, ClockOffset):
            known_at = self.clocks[-1][0] if self.clocks else -math.inf
            if stamped.monotonic_at > known_at:
                self.clocks.append((stamped.monotonic_at, stamped.event))

    def place(
        self, rank: int, events: Sequence[Stamped], zero_ahead_s: float | None
    ) -> list[float]:
        """Returns when each event was, on the clock of rank 0, whose wall clock is so far ahead."""
        comparisons = {}
        if self.clocks:
            own = [(at, c.monotonic_offset_s, c.error_s) for at, c in self.clocks]
            comparisons[rank] = Comparisons(*np.array(own).T)
        ahead_s = {rank: self.wall_ahead_s}
        if zero_ahead_s is not None:
            ahead_s[0] = zero_ahead_s
        placed = Timeline(ahead_s, comparisons).place(
            rank, np.array([stamped.monotonic_at for stamped in events])
        )
        return [float(at) for at in placed]

    def note(self, stamped: Stamped, at: float) -> None:
        """Notes a sign of life, and a step, if it is one."""
        monotonic_at = stamped.monotonic_at
        if isinstance(stamped.event, _BEATS):
            gap_s = monotonic_at - self.beat_monotonic_at
            self.longest_gap_s = max(self.longest_gap_s, gap_s if self.beat_monotonic_at else 0)
            self.beat_monotonic_at = monotonic_at
        self.first_monotonic_at = min(self.first_monotonic_at, monotonic_at)
        self.last_monotonic_at = max(self.last_monotonic_at, monotonic_at)
        self.last_at = max(self.last_at, at)
        if isinstance(stamped.event, StepDone):
            self.steps.append(stamped.event)
            self.stepped_at = at
            number = int(at // BIN_S)
            if not self.bins or self.bins[-1].number < number:
                self.bins.append(StepBin(number))
            self.bins[-1].add(at, stamped.event)


def rank_now(rank: int, state: LiveRank, host: str, now: float) -> RankNow:
    steps = list(state.steps)
    parts = merge_orders(step.parts_s for step in steps)
    return RankNow(
        rank=rank,
        host=host,
        device=state.start.device if state.start else "",
        step=steps[-1].step if steps else 0,
        silent_s=round(state.silent_s(now), 3),
        is_silent=state.is_silent,
        step_s=finite(state.step_s),
        parts_s={
            part: math.fsum(_possible_s(step.parts_s.get(part, 0.0)) for step in steps) / len(steps)
            for part in parts
        },
    )


def recent_steps(bins: Sequence[StepBin]) -> RecentSteps:
    return RecentSteps(
        at=[round(each.at, 3) for each in bins],
        step=[each.step for each in bins],
        loss=points([each.mean_loss for each in bins]),
        step_s=points([each.seconds / each.steps for each in bins]),
    )


def is_possible(stamped: Stamped) -> bool:
    """Whether its times can be: a damaged line must not stand out of the curves for ten minutes."""
    moments = (stamped.wall_at, stamped.monotonic_at)
    if not all(0 <= moment < _MOST_AT for moment in moments):
        return False
    event = stamped.event
    if isinstance(event, StepDone):
        return event.step >= 1 and 0 <= event.step_s < 1e9
    return True


def _possible_s(seconds: float) -> float:
    return seconds if 0 <= seconds < 1e9 else 0.0
