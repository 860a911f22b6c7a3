"""Whether a noisy curve that fell has begun to rise, by how much and since when. Pure.

What blurs a rise is how far a curve wavers by itself, and that may be slow: where neighbors err
alike, points far apart differ by more than neighbors do, and a few of them look like a trend.
"""

import math
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.learning.power_law import (
    LEAST_NOISE,
    LEAST_POINTS,
    NORMAL_SPREAD,
    OUTLIER,
    Numbers,
    alike,
    less_for_outliers,
)

_ROUNDS = 4
_DOUBT = 1.5
"""Standard errors by which neighbors may err more alike than it looks. Few points around a curve
that was fitted to them always look more independent than they are."""
_MOST_ALIKE = 0.98
_BEYOND_MEASURE = 1e100
"""Squares of more are no numbers any more."""
_CURVED_FALL = 2
"""Points before the lowest one from which on their fall may be curved: losses bend most where they
are steepest, and that is no noise."""


@dataclass(frozen=True)
class Rise:
    """From where a curve was lowest to where it is."""

    lowest: int
    """Index of the last point around which the curve was as low as ever, but for noise."""
    after: int
    """Points after it."""
    rise: float
    error: float
    """Of the rise, one standard deviation."""
    passed: float
    """The highest one before, from which the curve came back."""
    level_since: int
    """Index since which the curve has been about as low as it is now.

    Only there can wavering be taken for a rise, or a rise for wavering, so only there noise counts:
    a steep fall before bends so much that it would look like noise.
    """

    @property
    def spreads(self) -> float:
        return self.rise / self.error


def rise_of(values: Numbers) -> Rise | None:
    """None: fewer than three points. Means of three neighbors, so that no point decides alone."""
    if len(values) < 3:
        return None
    padded = np.concatenate([values[:1], values, values[-1:]])
    smooth = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    level_since = _level_since(values)
    nearly = smooth.min() + _noise_near(values[level_since:])
    lowest = int(np.flatnonzero(smooth <= nearly)[-1])
    passed = smooth[: lowest + 1] - np.minimum.accumulate(smooth[: lowest + 1])
    # A mean of three is high beside a jump; the point before the jump need not be.
    lowest += int(lowest + 1 < len(values) and values[lowest + 1] <= nearly)
    after = len(values) - 1 - lowest
    now = values[-min(3, max(1, after)) :]
    return Rise(
        lowest,
        after,
        rise=float(now.mean() - smooth.min()),
        error=wander_of(values[level_since:], lowest - level_since, after, (3, len(now))),
        passed=float(passed.max()),
        level_since=level_since,
    )


def _level_since(values: Numbers) -> int:
    """Early enough to leave points in which noise can be seen."""
    first = int(np.flatnonzero(values <= values[-3:].max())[0])
    return min(first, max(0, len(values) - LEAST_POINTS))


def wander_of(values: Numbers, bend: int, apart: int, averaged: tuple[int, int]) -> float:
    """How far from each other noise alone takes two means, of so many neighbors each, that are so
    many evaluations apart: one standard deviation. NaN: values are missing, or beyond all measure.

    The curve itself may fall before the `bend` and rise after it. Noise of which a share `kept`
    is left at each next evaluation takes neighbors apart by `step`, and points further away by
    more, up to what independent ones differ by.
    """
    if len(values) < 3 or not np.abs(values).max() < _BEYOND_MEASURE:
        return math.nan
    residuals, parameters = _around_a_bend(values, bend)
    steps = np.diff(residuals)
    degrees = max(1, len(steps) - parameters + 1)
    step = max(LEAST_NOISE, math.sqrt(float(steps @ steps) / degrees))
    kept = alike(residuals) + _DOUBT / math.sqrt(len(residuals))
    kept = min(_MOST_ALIKE, max(0.0, kept))
    variance = step**2 / (2 * (1 - kept))
    means = sum(_share_in_mean(count, kept) for count in averaged)
    return math.sqrt(variance * means * (1 - kept ** max(1, apart)))


def _share_in_mean(count: int, kept: float) -> float:
    """Of the variance of a point, what the mean of so many neighbors has."""
    shared = sum((count - lag) * kept**lag for lag in range(1, count))
    return (count + 2 * shared) / count**2


def _around_a_bend(values: Numbers, bend: int) -> tuple[Numbers, int]:
    """What is left of the values around a curve that bends once, and how many parameters it has
    with its bend.

    It may stay level for a while after its lowest point: the bend is put where the curve then fits
    best. Outliers count as much as is usual.
    """
    later = range(bend, max(bend, (bend + len(values)) // 2) + 1)
    curves = [_bent_at(each, len(values)) for each in later]
    left = [_residuals(curve, values) for curve in curves]
    best = int(np.argmin([np.abs(residuals).sum() for residuals in left]))
    most = OUTLIER * max(LEAST_NOISE, NORMAL_SPREAD * float(np.median(np.abs(left[best]))))
    return np.clip(left[best], -most, most), curves[best].shape[1] + 1


def _bent_at(bend: int, count: int) -> Numbers:
    places = (np.arange(count) - bend) / count
    before, since = np.minimum(0.0, places), np.maximum(0.0, places)
    columns = [np.ones_like(places), since]
    columns += [before] if bend >= 1 else []
    columns += [before**2] if bend >= _CURVED_FALL else []
    return np.stack(columns, axis=1)


def _residuals(curve: Numbers, values: Numbers) -> Numbers:
    """Around the curve's best fit, outliers counting less."""
    roots = np.ones_like(values)
    for _ in range(_ROUNDS):
        found = np.linalg.lstsq(curve * roots[:, None], values * roots, rcond=None)[0]
        residuals = np.asarray(values - curve @ found)
        roots = np.sqrt(less_for_outliers(residuals))
    return residuals


def _noise_near(values: Numbers) -> float:
    bends = np.diff(values, n=2) / math.sqrt(6)
    if len(bends) < 4:  # too few for a median to be trusted
        return max(LEAST_NOISE, float(np.sqrt(np.mean(bends**2))))
    return max(LEAST_NOISE, NORMAL_SPREAD * float(np.median(np.abs(bends))))
