"""Whether a noisy curve that fell has begun to rise, by how much and since when. Pure."""

import math
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.curve_fits import LEAST_NOISE, LEAST_POINTS, NORMAL_SPREAD, Numbers

_FURTHEST = 5
"""Evaluations over which a curve may waver."""


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
        error=noise_of(values[level_since:]) * math.sqrt(1 / len(now) + 1 / 3),
        passed=float(passed.max()),
        level_since=level_since,
    )


def _level_since(values: Numbers) -> int:
    """Early enough to leave points in which noise can be seen."""
    first = int(np.flatnonzero(values <= values[-3:].max())[0])
    return min(first, max(0, len(values) - LEAST_POINTS))


def noise_of(values: Numbers) -> float:
    """Standard deviation around whatever smooth curve the points follow.

    Seen in how far a point lies from the line through its neighbors; in longer curves also from a
    parabola through some further away, since what wavers slowly looks smooth from near. The first
    third, where a loss bends most, is left out there.
    """
    if len(values) < 3:
        return math.inf
    later = values[len(values) // 3 :]
    distances = range(2, min(_FURTHEST, len(values) // 8) + 1)
    return max(_noise_near(values), *(_noise_further(later, each) for each in distances), 0.0)


def _noise_near(values: Numbers) -> float:
    bends = np.diff(values, n=2) / math.sqrt(6)
    if len(bends) < 4:  # too few for a median to be trusted
        return max(LEAST_NOISE, float(np.sqrt(np.mean(bends**2))))
    return max(LEAST_NOISE, NORMAL_SPREAD * float(np.median(np.abs(bends))))


def _noise_further(values: Numbers, distance: int) -> float:
    first, second, third, fourth = (
        values[step * distance : len(values) - (3 - step) * distance] for step in range(4)
    )
    bends = (fourth - 3 * third + 3 * second - first) / math.sqrt(20)
    return NORMAL_SPREAD * float(np.median(np.abs(bends)))
