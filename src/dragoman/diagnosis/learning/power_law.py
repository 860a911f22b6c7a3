"""What a noisy learning curve says: a power law through it, the trend at its end. Pure.

All evaluations of a run use the same sentences, so the standard error of a loss, which tells how
other sentences would do, is nearly the same in all of them and cancels in their differences. What
blurs a trend is how a loss wavers from one evaluation to the next, and that is taken from the
scatter around the curve itself.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]

LEAST_POINTS = 6
"""For a curve with three parameters, so that three points are left to show the noise."""
_EXPONENTS: Numbers = np.geomspace(0.01, 8.0, 80)
"""From nearly a logarithm to nearly a step."""
_STRETCHES = (0.2, 0.35, 0.5, 0.65)
"""Where a stretch may begin, as a share of all tokens."""
_FORM_ERROR = 0.25
"""Of a gain, as a share of it: losses follow a power law only roughly. Curves of other plausible
forms (logarithm, a power law on top of an exponential) missed by up to this much."""
_ROUNDS = 8
OUTLIER = 2.5
"""Spreads from which on a point counts less: a single bad evaluation must not bend a curve."""
LEAST_NOISE = 1e-4
"""Nats. Nobody evaluates more exactly, and a perfect fit would promise an interval of no width."""
NORMAL_SPREAD = 1.4826
"""The median absolute deviation of normal noise, times this, is its standard deviation."""
# Student's t, 97.5 %, by degrees of freedom; between them along 1 / degrees it is nearly straight.
_T_DEGREES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60, np.inf])
_T_97_5 = np.array(
    [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.306, 2.228, 2.131, 2.086, 2.042, 2.0, 1.96]
)


class Estimate(NamedTuple):
    value: float
    low: float
    """With `high` the 95 % interval."""
    high: float

    @property
    def error(self) -> float:
        """About one standard error."""
        return (self.high - self.low) / (2 * 1.96)


@dataclass(frozen=True)
class PowerLaw:
    """loss = floor + amount x (tokens / last tokens) ^ -exponent."""

    floor: float
    amount: float
    exponent: float
    noise: float
    """Standard deviation of the points around the curve."""
    points: int
    """The newest so many were used."""
    is_whole: bool
    """The points lie around the curve at random, as far as one can tell."""
    _amounts: Numbers
    """For each exponent that was tried: the best amount, its half interval, NaN where no amount
    fits."""
    _half_widths: Numbers

    def gain(self, share: float, now: float = 1.0) -> Estimate:
        """How much lower the loss will be after `share` more tokens than so far; never negative.
        `now`: how many times the tokens of the last point there are so far.

        The interval holds every gain that some curve of this form gives which fits the points about
        as well as the best one (profile likelihood), so it also covers not knowing the exponent.
        """

        def of_amount(exponent: Numbers) -> Numbers:
            return np.asarray(now**-exponent * (1 - (1 + share) ** -exponent))

        fits = ~np.isnan(self._half_widths)
        factors = of_amount(_EXPONENTS)[fits]
        low = np.min((self._amounts - self._half_widths)[fits] * factors)
        high = np.max((self._amounts + self._half_widths)[fits] * factors)
        value = self.amount * float(of_amount(np.array(self.exponent)))
        below = math.hypot(value - min(value, float(low)), _FORM_ERROR * value)
        above = math.hypot(max(value, float(high)) - value, _FORM_ERROR * value)
        return Estimate(value, max(0.0, value - below), value + above)


def fit_end(tokens: Numbers, losses: Numbers) -> PowerLaw | None:
    """Through the longest stretch up to the end that one power law describes.

    A run learns the easy things first and fast; one law seldom holds from the first evaluation on.
    """
    fitted = None
    for share in _STRETCHES:
        kept = tokens >= share * tokens[-1] if len(tokens) else np.zeros(0, dtype=bool)
        shorter = fit_power_law(tokens[kept], losses[kept])
        fitted = shorter or fitted
        if fitted and (fitted.is_whole or shorter is None):
            break
    return fitted or fit_power_law(tokens[-LEAST_POINTS:], losses[-LEAST_POINTS:])


def fit_power_law(tokens: Numbers, losses: Numbers) -> PowerLaw | None:
    """None: fewer than LEAST_POINTS points that differ."""
    if len(tokens) < LEAST_POINTS or len(np.unique(tokens)) < LEAST_POINTS:
        return None
    # For a given exponent the rest is linear: no search, no start values, no local minima.
    bases = (tokens / tokens[-1]) ** -_EXPONENTS[:, None]
    weights = np.ones_like(losses)
    for _ in range(_ROUNDS):
        lines = _lines(bases, losses, weights)
        amounts = np.maximum(0.0, lines.slopes)
        floors = lines.mean_y - amounts * lines.mean_x
        residuals = losses - floors[:, None] - amounts[:, None] * bases
        squares = residuals**2 @ weights
        best = int(np.argmin(squares))
        used, weights = weights, less_for_outliers(residuals[best])
        if np.allclose(used, weights, atol=1e-3):
            break
    degrees = len(losses) - 3
    variance = max(float(squares[best]) / degrees, LEAST_NOISE**2) * _inflation(residuals[best])
    # Squares beyond the best ones that are no worse than chance, and what they leave each exponent.
    room = float(squares[best]) + t_97_5(degrees) ** 2 * variance - lines.squares
    half_widths = np.sqrt(np.where(room >= 0, room, np.nan) / lines.spread_x)
    return PowerLaw(
        floor=float(floors[best]),
        amount=float(amounts[best]),
        exponent=float(_EXPONENTS[best]),
        noise=math.sqrt(variance),
        points=len(losses),
        is_whole=_is_noise(residuals[best]),
        _amounts=lines.slopes,
        _half_widths=half_widths,
    )


def change_per(factor: float, x: Numbers, y: Numbers) -> Estimate | None:
    """How much `y` changes while `x` grows by this factor, by a line over log(x).

    None: fewer than four points.
    """
    if len(x) < 4:
        return None
    slope = slope_of(np.log(x), y)
    if slope is None:
        return None
    return Estimate(*(math.log(factor) * value for value in slope))


def slope_of(x: Numbers, y: Numbers) -> Estimate | None:
    """Of a line through the points, outliers counting less. None: no line can be drawn."""
    if len(x) < 3 or np.ptp(x) <= 0:
        return None
    weights = np.ones_like(y)
    for _ in range(_ROUNDS):
        line = _lines(x[None, :], y, weights)
        residuals = y - line.mean_y - line.slopes[0] * (x - line.mean_x[0])
        weights = less_for_outliers(residuals)
    degrees = len(x) - 2
    variance = float(np.sum(weights * residuals**2)) / degrees * _inflation(residuals)
    half = t_97_5(degrees) * math.sqrt(variance / float(line.spread_x[0]))
    slope = float(line.slopes[0])
    return Estimate(slope, slope - half, slope + half)


def t_97_5(degrees: int) -> float:
    return float(np.interp(-1 / degrees, -1 / _T_DEGREES, _T_97_5))


class _Lines(NamedTuple):
    """Weighted least squares of y against each row of x."""

    slopes: Numbers
    mean_x: Numbers
    mean_y: float
    spread_x: Numbers
    """Weighted sum of squares around the mean."""
    squares: Numbers
    """Of the residuals, weighted."""


def _lines(x: Numbers, y: Numbers, weights: Numbers) -> _Lines:
    total = float(weights.sum())
    mean_x = x @ weights / total
    mean_y = float(y @ weights) / total
    around_x, around_y = x - mean_x[:, None], y - mean_y
    spread_x = np.maximum(around_x**2 @ weights, np.finfo(float).tiny)
    slopes = around_x @ (weights * around_y) / spread_x
    residuals = around_y - slopes[:, None] * around_x
    return _Lines(slopes, mean_x, mean_y, spread_x, residuals**2 @ weights)


def less_for_outliers(residuals: Numbers) -> Numbers:
    spread = max(LEAST_NOISE, NORMAL_SPREAD * float(np.median(np.abs(residuals))))
    return np.asarray(np.minimum(1.0, OUTLIER * spread / np.maximum(np.abs(residuals), 1e-12)))


def _inflation(residuals: Numbers) -> float:
    """Of the variance, where neighbors err in the same direction: they are then fewer than they
    look."""
    if len(residuals) < 8:
        return 1.0
    kept = min(0.6, max(0.0, alike(residuals)))
    return (1 + kept) / (1 - kept)


def _is_noise(residuals: Numbers) -> bool:
    """Whether nothing is left that another curve would explain, over all and at the end, which
    counts most. Doubts as small as one standard deviation will do: they cost a few points only."""
    last = residuals[-max(3, len(residuals) // 5) :]
    bias = abs(float(last.mean())) * math.sqrt(len(last))
    spread = math.sqrt(float(residuals @ residuals) / max(1, len(residuals) - 3))
    return alike(residuals) < 1 / math.sqrt(len(residuals)) and bias <= max(spread, LEAST_NOISE)


def alike(residuals: Numbers) -> float:
    """Correlation of neighbors."""
    squares = float(residuals @ residuals)
    return float(residuals[:-1] @ residuals[1:]) / squares if squares > 0 else 0.0
