"""A figure with its interval, and what it is known from. Pure."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

TRIMMED_SHARE = 0.25
"""Of repeated steps, the slowest and as many of the fastest, which their mean leaves out."""


class Quantity(NamedTuple):
    value: float
    low: float
    high: float
    """With `low`: where the truth is expected, nine times out of ten."""
    is_measured: bool
    basis: str
    """What it was measured by, or why it is assumed, in a few words."""

    def map(self, change: Callable[[float], float]) -> "Quantity":
        """Returns the quantity after a change that keeps or reverses the order."""
        low, high = sorted((change(self.low), change(self.high)))
        return self._replace(value=change(self.value), low=low, high=high)


def exact(value: float, basis: str, is_measured: bool = False) -> Quantity:
    """Returns what has no spread: it was set, or follows from what was."""
    return Quantity(value, value, value, is_measured, basis)


def assumed(value: float, width: float, basis: str) -> Quantity:
    """Returns an assumption that may be off by a factor of 1 + `width` to both sides."""
    return Quantity(value, value / (1 + width), value * (1 + width), False, basis)


def measured(samples: Sequence[float], basis: str, least_width: float) -> Quantity:
    """Returns the mean of some measurements with the interval of one more of them.

    Twice the standard deviation to both sides, and no less than `least_width` of the mean: a few
    repetitions right after each other differ less than those of another hour.
    """
    mean = statistics.fmean(samples)
    spread = 2 * statistics.stdev(samples) if len(samples) > 1 else 0.0
    reach = max(spread, least_width * mean)
    return _around(mean, reach, basis)


def repeated(samples: Sequence[float], basis: str, between_runs: float) -> Quantity:
    """Returns what repetitions of the same work usually take, with the interval of another run.

    `between_runs`: by how much of its mean a run may differ from what others of the same work took,
    nine times out of ten. To it comes, as errors that do not know of each other add up, twice the
    standard deviation of the repetitions. That is not divided by their number: whatever slows down
    a machine may last as long as all of them.
    """
    mean = trimmed_mean(samples)
    spread = 2 * statistics.stdev(samples) if len(samples) > 1 else 0.0
    return _around(mean, math.hypot(between_runs * mean, spread), basis)


def trimmed_mean(samples: Sequence[float]) -> float:
    """Returns the mean of the middle half, which one repetition that was disturbed hardly moves."""
    out = int(TRIMMED_SHARE * len(samples))
    return statistics.fmean(sorted(samples)[out : len(samples) - out])


def widened(known: Quantity, share: float) -> Quantity:
    """Returns the quantity with another error of its value, which does not know of the others."""
    below, above = (
        math.hypot(side - known.value, share * known.value) for side in (known.low, known.high)
    )
    return known._replace(
        low=max(known.value - below, min(known.low, known.value / 4)), high=known.value + above
    )


def _around(mean: float, reach: float, basis: str) -> Quantity:
    # A few slow repetitions must not allow for no time at all.
    return Quantity(mean, max(mean - reach, mean / 4), mean + reach, True, basis)
