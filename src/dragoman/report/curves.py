"""Curves of the steps: 300,000 of them come in, few points go out.

Means alone would hide the outliers that matter most, so each point also has the lowest and highest
value of those that it stands for.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.report.content import Points, StepCurves, StepTimes, finite
from dragoman.telemetry.read.tables import Table
from dragoman.training.schedule import Rate

# More than a screen has pixels for; 300,000 steps then weigh as much as 1,000.
MAX_POINTS = 1000
MAX_BARS = 60
# Of the steps, the longest are not drawn but counted: one of a minute would flatten all others.
DRAWN_SHARE = 0.995

Floats = NDArray[np.float64]
Item = TypeVar("Item")


class Bins(NamedTuple):
    """Consecutive rows, divided into groups of nearly equal size."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def means(self, values: Floats) -> Floats:
        """Returns the means of the finite values; NaN where there is none."""
        is_finite = np.isfinite(values)
        sums = np.add.reduceat(np.where(is_finite, values, 0.0), self.first)
        return _ratio(sums, np.add.reduceat(is_finite.astype(np.float64), self.first))

    def sums(self, values: Floats) -> Floats:
        return np.add.reduceat(np.nan_to_num(values, posinf=0.0, neginf=0.0), self.first)

    def lowest(self, values: Floats) -> Floats:
        return np.fmin.reduceat(_without_infinities(values), self.first)

    def highest(self, values: Floats) -> Floats:
        return np.fmax.reduceat(_without_infinities(values), self.first)


def bins_of(rows: int, most: int = MAX_POINTS) -> Bins:
    bounds = np.linspace(0, rows, min(rows, most) + 1).astype(np.int64)
    return Bins(bounds[:-1], bounds[1:] - 1)


def step_curves(steps: Table, rate_as_set: Rate) -> StepCurves:
    bins = bins_of(len(steps))
    seconds, loss, tokens = steps["step_s"], steps["loss"], steps["tokens"]
    counted = np.where(np.isfinite(loss), tokens, 0.0)
    numbers = [int(number) for number in steps["step"][bins.last]]
    traffic = steps.groups.get("traffic_bytes", {})
    unmeasured = np.full(len(steps), np.nan)
    return StepCurves(
        step=numbers,
        training_loss=points(_ratio(bins.sums(loss * tokens), bins.sums(counted))),
        lowest_training_loss=points(bins.lowest(loss)),
        highest_training_loss=points(bins.highest(loss)),
        learning_rate=points(steps["learning_rate"][bins.last]),
        set_learning_rate=points([rate_as_set(max(1, number)) for number in numbers]),
        tokens_per_s=points(_ratio(bins.sums(tokens), bins.sums(seconds))),
        mean_step_s=points(bins.means(seconds)),
        fastest_step_s=points(bins.lowest(seconds)),
        slowest_step_s=points(bins.highest(seconds)),
        parts_s={
            part: points(bins.sums(spent) / (1 + bins.last - bins.first))
            for part, spent in steps.groups.get("parts_s", {}).items()
        },
        sent_bytes=points(bins.means(traffic.get("sent", unmeasured))),
        predicted_bytes=points(bins.means(traffic.get("predicted", unmeasured))),
    )


def step_times(seconds: Floats) -> StepTimes:
    finite_s = seconds[np.isfinite(seconds)]
    if not len(finite_s):
        return StepTimes(edges_s=[], counts=[], longer=0)
    end = float(np.quantile(finite_s, DRAWN_SHARE))
    drawn = finite_s[finite_s <= end]
    # Rice's rule.
    bars = min(MAX_BARS, max(1, math.ceil(2 * len(drawn) ** (1 / 3))))
    counts, edges = np.histogram(drawn, bars)
    return StepTimes(
        edges_s=[float(f"{edge:.6g}") for edge in edges],
        counts=[int(count) for count in counts],
        longer=len(finite_s) - len(drawn),
    )


def points(values: Sequence[float] | NDArray[Any]) -> Points:
    # Six digits are finer than any plot, and a third of the file.
    return [finite(float(f"{value:.6g}")) for value in values]


def thinned(items: Sequence[Item], most: int = MAX_POINTS) -> list[Item]:
    """Returns at most `most` of them, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[place * (len(items) - 1) // (most - 1)] for place in range(most)]


def _without_infinities(values: Floats) -> Floats:
    return np.where(np.isinf(values), np.nan, values)


def _ratio(over: Floats, under: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(under > 0, over / under, np.nan)
