"""What two figures of many steps have to do with each other, and how sure that is. Pure.

Neighbors in time resemble each other, so that a thousand steps say less than a thousand throws of
dice. Intervals are those of as many independent samples as carry the same information (Bartlett).
"""

import math

import numpy as np

from dragoman.diagnosis.estimate import Z_95, Estimate, autocorrelation
from dragoman.telemetry.read.tables import Array

FEWEST = 4
"""Fisher's interval needs more than three samples."""
CONSTANT = 1e-9
"""Relative scatter below which a series does not vary at all."""


def varies(values: Array) -> bool:
    return bool(np.std(values) > CONSTANT * max(abs(float(np.mean(values))), 1e-300))


def mean_of(values: Array) -> Estimate:
    """Returns the mean of at least one value."""
    mean = float(values.mean())
    if len(values) < FEWEST or not varies(values):
        return Estimate.of(mean, 0.0)
    error = float(values.std(ddof=1)) / math.sqrt(_effective_samples(values, values))
    return Estimate.of(mean, error)


def correlation(first: Array, second: Array) -> Estimate | None:
    """Returns Pearson's, with Fisher's interval; None: too few, or one of them does not vary."""
    if len(first) < FEWEST or not (varies(first) and varies(second)):
        return None
    found = float(np.clip(np.corrcoef(first, second)[0, 1], -1.0, 1.0))
    if abs(found) > 1 - CONSTANT:
        return Estimate(found, found, found)
    samples = max(float(FEWEST), _effective_samples(first, second))
    middle, reach = math.atanh(found), Z_95 / math.sqrt(samples - 3)
    return Estimate(found, math.tanh(middle - reach), math.tanh(middle + reach))


def _effective_samples(first: Array, second: Array) -> float:
    """Returns how many independent samples carry as much information."""
    both = _kept(first) * _kept(second)
    return max(1.0, len(first) * (1 - both) / (1 + both))


def _kept(values: Array) -> float:
    """Returns how much of a value is left in the next one, 0 to 1."""
    return min(max(0.0, autocorrelation(values - values.mean())), 0.999)
