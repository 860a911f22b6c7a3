"""Where the training loss spikes, and whether it has diverged. Pure.

The running training loss is compared with itself only, so it does no harm that dropout and label
smoothing are in it.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.diagnosis.learning.robust_fit import NORMAL_SPREAD, Floats
from dragoman.training.divergence import RISE_NATS, SPREADS

BLOCK = 50
"""Steps whose median is the level: a jump of less than half of them does not move it."""
SPIKE_NATS = 0.5
"""How far above the level a loss must be at least, whatever its spread."""
SPIKE_SPREADS = 8.0
"""A run has up to a million steps, and the noise of single batches has long tails."""
LOST_STEPS = 10
"""Non-finite losses in a row, at the end: fewer are skipped updates that may heal."""

Steps: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spike:
    first_step: int
    last_step: int
    height: float
    """Nats above the level before it."""


@dataclass(frozen=True)
class Divergence:
    since_step: int
    from_loss: float
    to_loss: float
    """NaN: the loss is not finite any more."""


def spikes_of(steps: Steps, losses: Floats) -> list[Spike]:
    """Returns the jumps that came back. Losses fall at first, so each is compared with the higher
    of its own level and the level before. Non-finite losses are skipped updates and do not count.
    """
    finite = np.isfinite(losses)
    steps, losses = steps[finite], losses[finite]
    levels = _levels(losses)
    if len(levels) < 3:
        return []
    block = np.minimum(np.arange(len(losses)) // BLOCK, len(levels) - 1)
    above = losses - np.maximum(levels[block], levels[np.maximum(0, block - 1)])
    has_level_before = block > 0
    around = np.abs(losses - levels[block])[has_level_before]
    spread = NORMAL_SPREAD * float(np.median(around))
    high = np.flatnonzero(has_level_before & (above > max(SPIKE_NATS, SPIKE_SPREADS * spread)))
    if not len(high):
        return []
    apart = np.flatnonzero(np.diff(high) > BLOCK) + 1
    return [
        Spike(int(steps[group[0]]), int(steps[group[-1]]), float(above[group].max()))
        for group in np.split(high, apart)
        # One that reaches to the end has not come back, or nobody knows yet.
        if group[-1] < len(losses) - 1
    ]


def divergence_of(steps: Steps, losses: Floats) -> Divergence | None:
    """Returns whether the loss is, at the end, far above the lowest level that it ever had."""
    finite = np.flatnonzero(np.isfinite(losses))
    lost = len(losses) - 1 - finite[-1] if len(finite) else len(losses)
    if lost >= LOST_STEPS or (lost and not len(finite)):
        since = int(steps[finite[-1] + 1 if len(finite) else 0])
        return Divergence(since, float(losses[finite[-1]]) if len(finite) else math.nan, math.nan)
    steps, losses = steps[finite], losses[finite]
    levels = _levels(losses)
    if len(levels) < 3:
        return None
    lowest = int(np.argmin(levels))
    own = losses[lowest * BLOCK : (lowest + 1) * BLOCK]
    spread = NORMAL_SPREAD * float(np.median(np.abs(own - levels[lowest])))
    allowed = float(levels[lowest]) + RISE_NATS + SPREADS * spread
    if levels[-1] <= allowed:
        return None
    calm = int(np.flatnonzero(levels <= allowed)[-1])
    since = int(steps[min(len(steps) - 1, (calm + 1) * BLOCK)])
    return Divergence(since, float(levels[lowest]), float(levels[-1]))


def _levels(losses: Floats) -> Floats:
    """Returns the medians of blocks; the last block reaches to the end."""
    blocks = len(losses) // BLOCK
    if not blocks:
        return np.empty(0)
    levels = np.median(losses[: blocks * BLOCK].reshape(blocks, BLOCK), axis=1)
    levels[-1] = np.median(losses[(blocks - 1) * BLOCK :])
    return levels
