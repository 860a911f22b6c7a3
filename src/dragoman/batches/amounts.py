"""The amount of work of one rank in a step. Without torch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Amounts(NamedTuple):
    sequences: int
    """Sentence pairs."""
    source_tokens: int
    target_tokens: int
    positions: int
    """Positions of both sides, padding included: what the model computes."""
    source_squared: int
    """Sums over the pairs of squares and products of their lengths, which attention scales with."""
    target_squared: int
    source_times_target: int


def amounts_of(micro_batches: Sequence[npt.NDArray[np.integer]]) -> Amounts:
    """Returns the amounts, given the lengths of pairs: one array [pairs, 2] each, source first."""
    if not micro_batches:
        return Amounts(0, 0, 0, 0, 0, 0, 0)
    lengths = np.concatenate(micro_batches).astype(np.int64)
    source, target = lengths[:, 0], lengths[:, 1]
    return Amounts(
        sequences=len(lengths),
        source_tokens=int(source.sum()),
        target_tokens=int(target.sum()),
        positions=sum(len(batch) * int(batch.max(axis=0).sum()) for batch in micro_batches),
        source_squared=int(source @ source),
        target_squared=int(target @ target),
        source_times_target=int(source @ target),
    )
