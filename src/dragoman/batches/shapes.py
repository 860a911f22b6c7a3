"""The shapes of a step's micro-batches: few numbers that cost as much as the real pairs to compute.

A batch plan comes in, and sentence pairs of made-up words but true lengths go out, so that a step
can be timed on a machine that does not have the data. Without torch.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.batches.plan import BatchPlan, Lengths, MicroBatch, share_out

USUAL_LENGTH = 27.0
"""Pieces of a sentence in the mean, where there is no data to count them in: of WMT's news."""
USUAL_SPREAD = 0.6
"""Of the logarithm of lengths, likewise."""
SYNTHETIC_STEPS = 16
_NOBODY = np.empty(0, np.int64)


class BatchShape(NamedTuple):
    pairs: int
    longest_source: int
    longest_target: int
    source_tokens: int
    target_tokens: int

    @property
    def cost(self) -> int:
        """Padded tokens of its longer side, as `MicroBatch.cost`."""
        return self.pairs * max(self.longest_source, self.longest_target)


StepShapes: TypeAlias = list[BatchShape]
"""Of all micro-batches of one step."""


def shapes_of(plan: BatchPlan, steps: int) -> list[StepShapes]:
    """Returns the shapes of the first steps of a plan, or of all that there are in an epoch."""
    found = []
    for step in range(1, min(steps, plan.steps_per_epoch) + 1):
        batches = [plan.lengths[batch.pairs] for batch in plan.batch(step).micro_batches]
        found.append([_shape(lengths) for lengths in batches])
    return found


def lengths_of(shape: BatchShape) -> Lengths:
    """Returns lengths of pairs that have this shape, [pairs, 2]."""
    sides = (
        _spread(shape.pairs, shape.longest_source, shape.source_tokens),
        _spread(shape.pairs, shape.longest_target, shape.target_tokens),
    )
    return np.stack(sides, axis=1)


def share_of(shapes: Sequence[BatchShape], rank: int, ranks: int) -> list[int]:
    """Returns which micro-batches of a step are this rank's, as in training."""
    return share_out(tuple(MicroBatch(_NOBODY, shape.cost) for shape in shapes), ranks)[rank]


def synthetic_lengths(tokens_per_update: int, longest: int) -> Lengths:
    """Returns lengths of as many usual sentences as some steps need; none is above `longest`."""
    chance = np.random.Generator(np.random.Philox(key=1))
    pairs = max(64, round(SYNTHETIC_STEPS * tokens_per_update / min(USUAL_LENGTH, longest)))
    mean = np.log(USUAL_LENGTH) - USUAL_SPREAD**2 / 2
    drawn = chance.lognormal(mean, USUAL_SPREAD, (pairs, 1)) * chance.normal(1.0, 0.15, (pairs, 2))
    return np.clip(np.rint(drawn), 1, longest).astype(np.int32)


def _shape(lengths: Lengths) -> BatchShape:
    longest, tokens = lengths.max(axis=0), lengths.sum(axis=0, dtype=np.int64)
    return BatchShape(len(lengths), *map(int, longest), *map(int, tokens))


def _spread(pairs: int, longest: int, tokens: int) -> npt.NDArray[np.int32]:
    """Returns so many lengths with this maximum and sum: the longest, and the others alike."""
    others = pairs - 1
    lengths = np.full(pairs, longest, np.int32)
    if others:
        each, more = divmod(tokens - longest, others)
        lengths[1:] = each
        lengths[1 : 1 + more] += 1
    return lengths
