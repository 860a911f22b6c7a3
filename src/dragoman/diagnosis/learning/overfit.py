"""Whether the validation loss has begun to rise while the training sample's loss falls. Pure.

What blurs a rise is how far a curve wavers by itself, and that may be slow: where neighbors err
alike, points far apart differ by more than neighbors do, and a few of them look like a trend.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dragoman.diagnosis.estimate import Estimate, autocorrelation
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.power_law import LEAST_POINTS
from dragoman.diagnosis.learning.robust_fit import (
    LEAST_NOISE,
    OUTLIER_SPREADS,
    Floats,
    huber_weights,
    robust_spread,
    slope_of,
)

LEAST_EVALUATIONS = 3
LEAST_AFTER = 3
"""Evaluations after the lowest one, before a rise is called one."""
RISE_NATS = 0.02
"""Smaller rises cost less than other seeds do."""
RISE_SPREADS = 4.3
"""The lowest of many noisy points lies too low, so the usual two will not do. Of simulated plateaus
of 8 to 40 evaluations none rose as far and as steadily where neighbors were independent; where they
were correlated by 0.8, three in a hundred did, and of those with only a dozen points up to ten."""
PASSED_TIMES = 1.5
"""How much further a rise must have gone than earlier ones that passed."""
DOUBT_SPREADS = 2.0
FEW_AFTER = 6
"""Evaluations after the lowest: with fewer a rise of so many spreads is a doubt, with more it would
have become clear."""
FALL_SPREADS = 2.0
"""For the training sample, whose lowest point is not chosen by its own values."""

_ROUNDS = 4
_DOUBT = 1.5
"""Standard errors by which neighbors may err more alike than it looks. Few points around a curve
that was fitted to them always look more independent than they are."""
_MOST_ALIKE = 0.98
_LARGEST = 1e100
"""Squares of larger values overflow."""

NotOverfit = Literal[
    "at its lowest", "within noise", "small rise", "passed before", "in doubt", "unsteady"
]
"""Why a run is not overfitting. passed before: earlier rises that went nearly as far have passed.
in doubt: a rise little beyond the noise. unsteady: no trend, or not against the training sample."""
State = Literal["overfitting", "perhaps", "both rise", "unexplained"] | NotOverfit


@dataclass(frozen=True)
class Rise:
    """From where a curve was lowest to where it is."""

    lowest: int
    """Index of the last point around which the curve was as low as ever, but for noise."""
    after: int
    """Points after it."""
    newest: int
    """Up to three of them at the end are averaged."""
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


@dataclass(frozen=True)
class Overfit:
    state: State
    """perhaps: it looks so, and there are too few evaluations since. both rise: the training sample
    too, so the run is losing what it had learned. unexplained: validation rises, and nothing is
    known of the training sample."""
    rise: Rise
    lowest_step: int
    train_change: float
    """Of the training sample's loss since validation was lowest; NaN: not known."""
    bleu_change: float
    """Of BLEU since then; NaN: not known."""
    bleu_slope: Estimate | None

    @property
    def bleu_falls(self) -> bool:
        return self.bleu_slope is not None and self.bleu_slope.high < 0

    @property
    def bleu_rises(self) -> bool:
        return self.bleu_slope is not None and self.bleu_slope.low > 0 and self.bleu_change > 0


def overfit_of(evaluations: Evaluations) -> Overfit | None:
    """Returns None for too few evaluations. All must have a finite validation loss."""
    rise = rise_of(evaluations.validation_loss)
    if rise is None:
        return None
    train_change = _change_since(evaluations.train_sample_loss, rise)
    return Overfit(
        _state(evaluations, rise, train_change),
        rise,
        int(evaluations.step[rise.lowest]),
        train_change,
        bleu_change=_change_since(evaluations.bleu, rise),
        bleu_slope=slope_of(evaluations.step[rise.lowest :], evaluations.bleu[rise.lowest :]),
    )


def _change_since(values: Floats, rise: Rise) -> float:
    """Returns the change from the lowest point alone: before it a curve may still have fallen
    steeply, after it jumped."""
    return float(values[-rise.newest :].mean() - values[rise.lowest])


def _state(evaluations: Evaluations, rise: Rise, train_change: float) -> State:
    if math.isnan(train_change) and rise.spreads >= RISE_SPREADS:
        return "unexplained"
    if rise.after == 0 or rise.rise <= 0:
        return "at its lowest"
    if rise.spreads < DOUBT_SPREADS:
        return "within noise"
    if rise.rise < RISE_NATS:
        return "small rise"
    if rise.rise < PASSED_TIMES * rise.passed:
        return "passed before"
    sample = evaluations.train_sample_loss[rise.level_since :]
    bend = rise.lowest - rise.level_since
    train_error = wander_of(sample, bend, rise.after, (1, rise.newest))
    falls = train_change < -train_error
    if rise.spreads < RISE_SPREADS:
        return "perhaps" if falls and rise.after < FEW_AFTER else "in doubt"
    if train_change > FALL_SPREADS * train_error:
        return "both rise"
    if not falls:
        return "unsteady"
    if rise.after < LEAST_AFTER:
        return "perhaps"
    slope = slope_of(evaluations.step[rise.lowest :], evaluations.validation_loss[rise.lowest :])
    # A jump that has healed is no trend.
    return "overfitting" if slope is not None and slope.low > 0 else "unsteady"


def rise_of(values: Floats) -> Rise | None:
    """Returns None for too few points. Means of three neighbors are compared, so that no point
    decides alone."""
    if len(values) < LEAST_EVALUATIONS:
        return None
    padded = np.concatenate([values[:1], values, values[-1:]])
    smooth = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    # Early enough to leave points in which noise can be seen.
    first_as_low = int(np.flatnonzero(values <= values[-3:].max())[0])
    level_since = min(first_as_low, max(0, len(values) - LEAST_POINTS))
    nearly_lowest = smooth.min() + _noise_of_neighbors(values[level_since:])
    lowest = int(np.flatnonzero(smooth <= nearly_lowest)[-1])
    passed = smooth[: lowest + 1] - np.minimum.accumulate(smooth[: lowest + 1])
    # A mean of three is high beside a jump; the point before the jump need not be.
    lowest += int(lowest + 1 < len(values) and values[lowest + 1] <= nearly_lowest)
    after = len(values) - 1 - lowest
    newest = min(3, max(1, after))
    return Rise(
        lowest,
        after,
        newest,
        rise=float(values[-newest:].mean() - smooth.min()),
        error=wander_of(values[level_since:], lowest - level_since, after, (3, newest)),
        passed=float(passed.max()),
        level_since=level_since,
    )


def wander_of(values: Floats, bend: int, apart: int, averaged: tuple[int, int]) -> float:
    """Returns by how much noise alone lets two means differ, of `averaged` neighbors each and
    `apart` evaluations from each other: one standard deviation. NaN: values are missing or too
    large.

    The curve itself may fall before the `bend` and rise after it. Noise of which a share `kept`
    is left at each next evaluation takes neighbors apart by `step`, and points further away by
    more, up to what independent ones differ by.
    """
    if len(values) < 3 or not np.abs(values).max() < _LARGEST:
        return math.nan
    residuals, parameters = _around_a_bend(values, bend)
    steps = np.diff(residuals)
    degrees = max(1, len(steps) - parameters + 1)
    step = max(LEAST_NOISE, math.sqrt(float(steps @ steps) / degrees))
    kept = autocorrelation(residuals) + _DOUBT / math.sqrt(len(residuals))
    kept = min(_MOST_ALIKE, max(0.0, kept))
    variance = step**2 / (2 * (1 - kept))
    means = sum(_variance_of_mean(count, kept) for count in averaged)
    return math.sqrt(variance * means * (1 - kept ** max(1, apart)))


def _variance_of_mean(count: int, kept: float) -> float:
    """Returns the variance of the mean of so many neighbors, as a share of that of a point."""
    shared = sum((count - lag) * kept**lag for lag in range(1, count))
    return (count + 2 * shared) / count**2


def _around_a_bend(values: Floats, bend: int) -> tuple[Floats, int]:
    """Returns the residuals around a curve that bends once, outliers clipped, and the number of its
    parameters with the bend.

    The curve may stay level for a while after its lowest point: the bend is put where it fits best.
    """
    bends = range(bend, max(bend, (bend + len(values)) // 2) + 1)
    residuals = [_residuals(_curve_with(each, len(values)), values) for each in bends]
    best = int(np.argmin([np.abs(each).sum() for each in residuals]))
    most = OUTLIER_SPREADS * robust_spread(residuals[best])
    return np.clip(residuals[best], -most, most), 3 + min(2, bends[best])


def _curve_with(bend: int, count: int) -> Floats:
    """Returns the columns of a curve that is a parabola before the bend and a line after it: losses
    bend most where they are steepest, and that is no noise. With fewer than two points before the
    bend columns depend on each other, which least squares copes with."""
    places = (np.arange(count) - bend) / count
    before, since = np.minimum(0.0, places), np.maximum(0.0, places)
    return np.stack([np.ones_like(places), since, before, before**2], axis=1)


def _residuals(curve: Floats, values: Floats) -> Floats:
    roots = np.ones_like(values)
    for _ in range(_ROUNDS):
        found = np.linalg.lstsq(curve * roots[:, None], values * roots, rcond=None)[0]
        residuals = np.asarray(values - curve @ found)
        roots = np.sqrt(huber_weights(residuals))
    return residuals


def _noise_of_neighbors(values: Floats) -> float:
    """Returns the standard deviation of noise by how neighbors bend, whatever the trend."""
    bends = np.diff(values, n=2) / math.sqrt(6)
    if len(bends) < 4:  # too few for a median to be trusted
        return max(LEAST_NOISE, float(np.sqrt(np.mean(bends**2))))
    return robust_spread(bends)
