"""A power law through the end of a learning curve, and what it promises of more training. Pure."""

import math
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.estimate import Estimate, autocorrelation
from dragoman.diagnosis.learning.robust_fit import (
    LEAST_NOISE,
    ROUNDS,
    Floats,
    huber_weights,
    t_97_5,
    variance_inflation,
    weighted_lines,
)

LEAST_POINTS = 6
"""For a curve with three parameters, so that three points are left to show the noise."""
_EXPONENTS: Floats = np.geomspace(0.01, 8.0, 80)
"""From nearly a logarithm to nearly a step."""
_BEGINNINGS = (0.2, 0.35, 0.5, 0.65)
"""Where the fitted part of a curve may begin, as a share of all tokens."""
_FORM_ERROR = 0.25
"""Of a gain, as a share of it: losses follow a power law only roughly. Curves of other plausible
forms (logarithm, a power law on top of an exponential) missed by up to this much."""


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
    is_adequate: bool
    """The points lie around the curve at random, as far as one can tell."""
    _amounts: Floats
    """For each exponent that was tried: the best amount, its half interval, NaN where no amount
    fits."""
    _half_widths: Floats

    def gain(self, share: float, now: float = 1.0) -> Estimate:
        """Returns how much lower the loss will be after `share` more tokens than so far, at least
        0. `now`: the tokens so far, as a multiple of those of the last point.

        The interval holds every gain of a curve of this form that fits the points about as well as
        the best one (profile likelihood), so it also covers not knowing the exponent.
        """

        def of_amount(exponent: Floats) -> Floats:
            return np.asarray(now**-exponent * (1 - (1 + share) ** -exponent))

        fits = ~np.isnan(self._half_widths)
        factors = of_amount(_EXPONENTS)[fits]
        low = np.min((self._amounts - self._half_widths)[fits] * factors)
        high = np.max((self._amounts + self._half_widths)[fits] * factors)
        value = self.amount * float(of_amount(np.array(self.exponent)))
        below = math.hypot(value - min(value, float(low)), _FORM_ERROR * value)
        above = math.hypot(max(value, float(high)) - value, _FORM_ERROR * value)
        return Estimate(value, max(0.0, value - below), value + above)


def fit_end(tokens: Floats, losses: Floats) -> PowerLaw | None:
    """Returns the fit of the longest part, up to the end, that one power law describes.

    A run learns the easy things first and fast; one law seldom holds from the first evaluation on.
    """
    fitted = None
    for share in _BEGINNINGS:
        kept = tokens >= share * tokens[-1] if len(tokens) else np.zeros(0, dtype=bool)
        shorter = fit_power_law(tokens[kept], losses[kept])
        fitted = shorter or fitted
        if fitted and (fitted.is_adequate or shorter is None):
            break
    return fitted or fit_power_law(tokens[-LEAST_POINTS:], losses[-LEAST_POINTS:])


def fit_power_law(tokens: Floats, losses: Floats) -> PowerLaw | None:
    """Returns None for fewer than LEAST_POINTS points that differ."""
    if len(np.unique(tokens)) < LEAST_POINTS:
        return None
    # For a given exponent the rest is linear: no search, no start values, no local minima.
    bases = (tokens / tokens[-1]) ** -_EXPONENTS[:, None]
    weights = np.ones_like(losses)
    for _ in range(ROUNDS):
        lines = weighted_lines(bases, losses, weights)
        amounts = np.maximum(0.0, lines.slopes)
        floors = lines.mean_y - amounts * lines.mean_x
        residuals = losses - floors[:, None] - amounts[:, None] * bases
        squares = residuals**2 @ weights
        best = int(np.argmin(squares))
        used, weights = weights, huber_weights(residuals[best])
        if np.allclose(used, weights, atol=1e-3):
            break
    degrees = len(losses) - 3
    variance = max(float(squares[best]) / degrees, LEAST_NOISE**2)
    variance *= variance_inflation(residuals[best])
    # Squares beyond the best ones that are no worse than chance, and what they leave each exponent.
    room = float(squares[best]) + t_97_5(degrees) ** 2 * variance - lines.squares
    return PowerLaw(
        floor=float(floors[best]),
        amount=float(amounts[best]),
        exponent=float(_EXPONENTS[best]),
        noise=math.sqrt(variance),
        points=len(losses),
        is_adequate=_is_noise(residuals[best]),
        _amounts=lines.slopes,
        _half_widths=np.sqrt(np.where(room >= 0, room, np.nan) / lines.spread_x),
    )


def _is_noise(residuals: Floats) -> bool:
    """Returns whether nothing is left that another curve would explain, over all and at the end,
    which counts most. Doubts of one standard deviation suffice: they cost only a few points."""
    last = residuals[-max(3, len(residuals) // 5) :]
    bias = abs(float(last.mean())) * math.sqrt(len(last))
    spread = math.sqrt(float(residuals @ residuals) / max(1, len(residuals) - 3))
    is_random = autocorrelation(residuals) < 1 / math.sqrt(len(residuals))
    return is_random and bias <= max(spread, LEAST_NOISE)
