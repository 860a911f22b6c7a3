"""A figure with its interval, and what it is known from. Pure."""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple


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
    # A few slow repetitions must not allow for no time at all.
    return Quantity(mean, max(mean - reach, mean / 4), mean + reach, True, basis)
