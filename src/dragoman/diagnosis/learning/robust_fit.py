"""Lines through noisy points, fitted so that outliers count less, with their intervals. Pure.

All evaluations of a run use the same sentences, so the standard error of a loss, which tells how
other sentences would do, is nearly the same in all of them and cancels in their differences. What
blurs a trend is how a loss wavers from one evaluation to the next, and that is taken from the
scatter around the curve itself.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.diagnosis.estimate import Estimate, autocorrelation

Floats: TypeAlias = npt.NDArray[np.float64]

OUTLIER_SPREADS = 2.5
"""From here on a point counts less: a single bad evaluation must not bend a curve."""
LEAST_NOISE = 1e-4
"""Nats. No evaluation is more exact, and a perfect fit would promise an interval of no width."""
NORMAL_SPREAD = 1.4826
"""The median absolute deviation of normal noise, times this, is its standard deviation."""
ROUNDS = 8
"""Of fitting and weighting anew."""


def slope_of(x: Floats, y: Floats) -> Estimate | None:
    """Returns the slope of a line through the points; None if they do not determine one."""
    if len(x) < 3 or np.ptp(x) <= 0:
        return None
    weights = np.ones_like(y)
    for _ in range(ROUNDS):
        line = weighted_lines(x[None, :], y, weights)
        residuals = y - line.mean_y - line.slopes[0] * (x - line.mean_x[0])
        weights = huber_weights(residuals)
    degrees = len(x) - 2
    variance = float(np.sum(weights * residuals**2)) / degrees * variance_inflation(residuals)
    half = t_97_5(degrees) * math.sqrt(variance / float(line.spread_x[0]))
    slope = float(line.slopes[0])
    return Estimate(slope, slope - half, slope + half)


def change_per(factor: float, x: Floats, y: Floats) -> Estimate | None:
    """Returns how much `y` changes while `x` grows by the factor, by a line over log(x); None for
    fewer than four points."""
    slope = slope_of(np.log(x), y) if len(x) >= 4 else None
    return slope and Estimate(*(math.log(factor) * value for value in slope))


def t_97_5(degrees: int) -> float:
    """Returns Student's t that bounds a 95 % interval on each side."""
    # Importing SciPy takes 0.2 s, which the start of a training loop does not wait for.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, 0.975))


class WeightedLines(NamedTuple):
    slopes: Floats
    mean_x: Floats
    mean_y: float
    spread_x: Floats
    """Weighted sum of squares around the mean."""
    squares: Floats
    """Weighted sum of squares of the residuals."""


def weighted_lines(x: Floats, y: Floats, weights: Floats) -> WeightedLines:
    """Returns the weighted least squares of `y` against each row of `x`."""
    total = float(weights.sum())
    mean_x = x @ weights / total
    mean_y = float(y @ weights) / total
    around_x, around_y = x - mean_x[:, None], y - mean_y
    spread_x = np.maximum(around_x**2 @ weights, np.finfo(float).tiny)
    slopes = around_x @ (weights * around_y) / spread_x
    residuals = around_y - slopes[:, None] * around_x
    return WeightedLines(slopes, mean_x, mean_y, spread_x, residuals**2 @ weights)


def huber_weights(residuals: Floats) -> Floats:
    most = OUTLIER_SPREADS * robust_spread(residuals)
    return np.asarray(np.minimum(1.0, most / np.maximum(np.abs(residuals), 1e-12)))


def robust_spread(residuals: Floats) -> float:
    """Returns the standard deviation by the median, which outliers hardly move."""
    return max(LEAST_NOISE, NORMAL_SPREAD * float(np.median(np.abs(residuals))))


def variance_inflation(residuals: Floats) -> float:
    """Returns by how much the variance of a slope grows where neighbors err in the same direction:
    correlated points carry less information than as many independent ones."""
    if len(residuals) < 8:
        return 1.0
    kept = min(0.6, max(0.0, autocorrelation(residuals)))
    return (1 + kept) / (1 - kept)
