"""Blocks: which shards of the training data are read, and shuffled, together.

Sizes of shards come in, blocks of them go out; pure. An epoch goes through the blocks one after
the other, so that a host needs the shards of one block at a time, and not all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Block(NamedTuple):
    shards: tuple[int, ...]
    """Their numbers."""
    ranges: tuple[range, ...]
    """The pairs of each of them, as numbers in the whole data."""

    @property
    def pairs(self) -> int:
        return sum(map(len, self.ranges))

    def numbers(self) -> npt.NDArray[np.int64]:
        """Returns the numbers of its pairs, in order."""
        return np.concatenate([np.arange(each.start, each.stop) for each in self.ranges])


def blocks_of(shard_pairs: Sequence[int], block_pairs: int) -> tuple[Block, ...]:
    """Groups shards into blocks of about `block_pairs` pairs; 0: one block of all.

    Of n blocks each has every n-th shard. Sources follow each other in the data, so that a block of
    neighbors would hold one source alone, and this way each holds a part of all larger ones.
    Shards without a pair are left out.
    """
    ends = np.cumsum(shard_pairs).tolist()
    filled = [
        (shard, range(end - pairs, end))
        for shard, (end, pairs) in enumerate(zip(ends, shard_pairs, strict=True))
        if pairs
    ]
    if not filled:
        return ()
    count = round(ends[-1] / block_pairs) if block_pairs else 1
    count = max(1, min(count, len(filled)))
    return tuple(Block(*zip(*filled[first::count], strict=True)) for first in range(count))


def block_order(seed: int, epoch: int, count: int) -> list[int]:
    """Returns the order in which an epoch goes through so many blocks."""
    keys = random_keys(seed, epoch, block=_ALL_BLOCKS, stream=0, count=count)
    order: list[int] = np.argsort(keys, kind="stable").tolist()
    return order


_ALL_BLOCKS = 2**63
"""Takes the place of a block's number, which none of them has."""


def random_keys(
    seed: int, epoch: int, block: int, stream: int, count: int
) -> npt.NDArray[np.uint64]:
    """Returns random numbers to sort by, which are others for each block and stream."""
    # The raw stream of a bit generator is the one thing NumPy promises never to change, so that
    # a run can be resumed under another version.
    key = np.array([seed, (epoch << 1) | stream], dtype=np.uint64)
    # The last word of the counter, which no count of pairs ever reaches.
    counter = np.array([0, 0, 0, block], dtype=np.uint64)
    return np.random.Philox(key=key, counter=counter).random_raw(count)
