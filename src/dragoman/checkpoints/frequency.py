"""Decides how often to save: rarely enough to cost little, often enough to lose little.

Without torch."""

import math
import statistics
from collections import deque
from dataclasses import dataclass

SHORTEST_S = 10.0
"""Shortest interval between two saves, even if they cost nothing."""
IDLE_SHARE = 10
"""Idle time of a disk, in multiples of its writing time, since others may use it too."""
FIRST_S = 60.0
"""Interval until the first save of an attempt, which measures the cost."""


@dataclass(frozen=True)
class SaveCost:
    stall_s: float
    """How long training stalls."""
    slowdown: float
    """Share by which steps take longer while a save is being written."""
    in_flight_s: float
    """From the snapshot until it is complete on disk. A failure in between loses it."""

    @property
    def seconds(self) -> float:
        """Returns the seconds of training that one save costs."""
        return self.stall_s + self.slowdown * self.in_flight_s


def save_interval_s(cost: SaveCost, hours_between_failures: float, lost_minutes: float) -> float:
    """Returns the seconds between two saves that lose the least time to saving plus failures.

    A failure costs the work since the last complete checkpoint: at most the interval and the
    time that a save is in flight. `lost_minutes` bounds that, where the disk is fast enough.
    """
    best = _daly_s(cost.seconds, 3600 * hours_between_failures)
    wanted = max(best, SHORTEST_S, IDLE_SHARE * cost.in_flight_s)
    return max(cost.in_flight_s, min(wanted, 60 * lost_minutes - cost.in_flight_s))


def _daly_s(cost_s: float, between_failures_s: float) -> float:
    """Returns the time of work between two saves: Young's square root with Daly's correction.

    J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
    Future Generation Computer Systems 22 (2006).
    """
    if cost_s >= 2 * between_failures_s:
        return between_failures_s
    ratio = cost_s / (2 * between_failures_s)
    young_s = math.sqrt(2 * cost_s * between_failures_s)
    return young_s * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost_s


class SaveClock:
    """Decides when the next save is due, on the clock of the rank that decides for all.

    Instants are the run's own seconds, as `RunState.elapsed_s`: a run that was stopped for a night
    has lost nothing in it.
    """

    def __init__(self, hours_between_failures: float, lost_minutes: float, now_s: float) -> None:
        self._hours_between_failures, self._lost_minutes = hours_between_failures, lost_minutes
        self._last_s = now_s
        self._cost: SaveCost | None = None
        self._failed_s = 0.0
        self._alone: deque[float] = deque(maxlen=50)
        self._beside: deque[float] = deque(maxlen=50)

    @property
    def interval_s(self) -> float:
        if self._cost is None:
            return min(max(FIRST_S, IDLE_SHARE * self._failed_s), 60 * self._lost_minutes)
        return save_interval_s(self._cost, self._hours_between_failures, self._lost_minutes)

    def is_due(self, now_s: float, next_step_s: float = 0.0) -> bool:
        """Returns whether to save at the end of this step: due now, or too late after the next."""
        worked_s = now_s - self._last_s
        in_flight_s = self._cost.in_flight_s if self._cost else 0.0
        lost_s = worked_s + next_step_s + in_flight_s
        return worked_s >= self.interval_s or lost_s > 60 * self._lost_minutes

    def begun(self, now_s: float) -> None:
        self._last_s = now_s

    def step(self, step_s: float, while_saving: bool) -> None:
        """Records how long a step took, and whether a save was being written meanwhile."""
        (self._beside if while_saving else self._alone).append(step_s)

    def saved(self, stall_s: float, in_flight_s: float) -> None:
        self._cost = SaveCost(stall_s, self._slowdown(), in_flight_s)

    def failed(self, in_flight_s: float) -> None:
        """Schedules a retry soon after a failed save, however long the interval is."""
        self._cost, self._failed_s = None, in_flight_s

    def _slowdown(self) -> float:
        if not self._beside or not self._alone:
            return 0.0
        # Medians, so that one step that was delayed by something else does not count.
        return max(0.0, statistics.median(self._beside) / statistics.median(self._alone) - 1)
