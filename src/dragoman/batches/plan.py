"""The global batch plan: which pairs make up which micro-batch of which step.

A pure function of (lengths of the data, seed, step); the number of ranks is nowhere in it. Every
step has the same number of micro-batches and every epoch the same number of steps, so the batch
of any step is found by arithmetic, without replaying those before it.

How: lengths are rounded up to *cells* that hold pairs of nearly equal shape. Cutting the cells
into micro-batches needs their sizes alone, so it is done once, for all epochs. An epoch shuffles
the pairs inside their cells, and then the micro-batches over the steps.

Where the data is cut into blocks, each block is planned like that on its own, and an epoch takes
the blocks in an order of its own. One block of everything is the usual case.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.batches.blocks import Block, block_order, blocks_of, random_keys
from dragoman.errors import UserError

Lengths = npt.NDArray[np.int32]
PairNumbers = npt.NDArray[np.int64]

# Rounding a length to a grain of an eighth keeps padding low and cells large enough to shuffle in.
GRAIN_SHARE = 8
MOST_COUNTED = 1 << 22
"""Shapes up to this number are counted, in a table; all of sentences below 2,000 pieces are."""


class MicroBatch(NamedTuple):
    pairs: PairNumbers
    cost: int
    """Padded tokens of its longer side, to which a rank's work is proportional."""


class GlobalBatch(NamedTuple):
    micro_batches: tuple[MicroBatch, ...]
    tokens: int
    """Target tokens of the whole step: what its gradient is divided by."""


@dataclass(frozen=True)
class _Cells:
    """Groups of pairs of nearly equal shape, ordered so that neighbors are alike."""

    of_pair: npt.NDArray[np.unsignedinteger]  # of the smallest type, which sorts the fastest
    sizes: list[int]
    widths: list[int]  # longest side of any pair in the cell


class BatchPlan:
    def __init__(
        self,
        lengths: Lengths,
        tokens_per_update: int,
        micro_batch_tokens: int,
        seed: int,
        blocks: Sequence[Block] = (),
    ) -> None:
        """`blocks`: together all pairs, each once; none given: all pairs are one block."""
        if not len(lengths):
            raise UserError(
                "the prepared data has no training pair in an epoch; raise the weights of the "
                "sources in data.train or add data, and prepare it again"
            )
        longest = int(lengths.max())
        if longest > micro_batch_tokens:
            raise UserError(
                f"the longest training pair has {longest} pieces on one side, more than "
                f"training.micro_batch_tokens = {micro_batch_tokens}; raise that, or lower "
                "data.max_length"
            )
        self._target_lengths = lengths[:, 1]
        self.lengths = lengths
        """Returns the lengths of source and target, [pairs, 2]."""
        self.micro_batch_tokens = micro_batch_tokens
        """Most padded tokens of a side."""
        self.blocks = tuple(blocks) or blocks_of([len(lengths)], 0)
        self._seed = seed
        of_blocks = [
            np.concatenate([lengths[each.start : each.stop] for each in block.ranges])
            for block in self.blocks
        ]
        tokens = [int(of_block[:, 1].sum()) for of_block in of_blocks]
        cells = [_cells(of_block) for of_block in of_blocks]
        pairs = [block.pairs for block in self.blocks]
        least = [len(_cut(each, micro_batch_tokens)) - 1 for each in cells]

        # A power of two divides evenly among the usual numbers of ranks.
        self.micro_batches_per_step = 1
        while True:
            self._steps = [
                max(1, min(round(each / tokens_per_update), number // self.micro_batches_per_step))
                for each, number in zip(tokens, pairs, strict=True)
            ]
            wanted = [steps * self.micro_batches_per_step for steps in self._steps]
            if all(few <= many for few, many in zip(least, wanted, strict=True)):
                break
            self.micro_batches_per_step *= 2
        self.steps_per_epoch = sum(self._steps)
        for number, many in zip(pairs, wanted, strict=True):
            if many > number:
                of_block = "" if len(pairs) == 1 else " of a block"
                larger = "" if len(pairs) == 1 else ", raise data.block_pairs"
                raise UserError(
                    f"{number} training pairs{of_block} are too few for {many} micro-batches; "
                    f"raise training.micro_batch_tokens{larger} or add data"
                )
        self._cells_of_pairs = [each.of_pair for each in cells]
        self._bounds = [
            _cut_into(each, many, micro_batch_tokens)
            for each, many in zip(cells, wanted, strict=True)
        ]
        # Two: what is loaded, and what a rollback or the next block needs.
        self._planned = lru_cache(maxsize=2)(self._plan_block)
        self._order = lru_cache(maxsize=2)(self._plan_epoch)

    def batch(self, step: int) -> GlobalBatch:
        """Returns the global batch of a step; steps count from 1."""
        block, index = self._place(step)
        order, grouping = self._planned((step - 1) // self.steps_per_epoch, block)
        bounds = self._bounds[block]
        micro_batches = []
        tokens = 0
        for number in grouping[index]:
            pairs = order[bounds[number] : bounds[number + 1]]
            tokens += int(self._target_lengths[pairs].sum())
            micro_batches.append(MicroBatch(pairs, len(pairs) * int(self.lengths[pairs].max())))
        return GlobalBatch(tuple(micro_batches), tokens)

    def epoch_of(self, step: int) -> float:
        """Returns how many times the data has been seen after `step`."""
        return step / self.steps_per_epoch

    def block_of(self, step: int) -> int:
        """Returns the number of the block that holds all pairs of a step."""
        return self._place(step)[0]

    def blocks_from(self, step: int) -> Iterator[tuple[int, int]]:
        """Yields (number, first step) of the blocks in the order of their use, without end.

        The first is that of `step`, which may be in the middle of it.
        """
        begun = (step - 1) // self.steps_per_epoch
        for epoch in count(begun):
            order, ends = self._order(epoch)
            first = epoch * self.steps_per_epoch + 1
            skipped = (
                int(np.searchsorted(ends, step - first, side="right")) if epoch == begun else 0
            )
            begins = [first, *(first + ends[:-1]).tolist()]
            yield from islice(zip(order, begins, strict=True), skipped, None)

    def _place(self, step: int) -> tuple[int, int]:
        """Returns the block of a step, and the number of the step in it, from 0."""
        epoch, index = divmod(step - 1, self.steps_per_epoch)
        order, ends = self._order(epoch)
        at = int(np.searchsorted(ends, index, side="right"))
        return order[at], index - (int(ends[at - 1]) if at else 0)

    def _plan_epoch(self, epoch: int) -> tuple[list[int], npt.NDArray[np.int64]]:
        """Returns the order of the blocks, and after how many steps each of them ends."""
        order = block_order(self._seed, epoch, len(self.blocks))
        return order, np.cumsum([self._steps[block] for block in order])

    def _plan_block(self, epoch: int, block: int) -> tuple[PairNumbers, npt.NDArray[np.int64]]:
        cell_of_pair, bounds = self._cells_of_pairs[block], self._bounds[block]
        pair_keys, batch_keys = (
            random_keys(self._seed, epoch, block, stream, number)
            for stream, number in enumerate((len(cell_of_pair), len(bounds) - 1))
        )
        order = _argsort(pair_keys)
        order = order[np.argsort(cell_of_pair[order], kind="stable")]
        grouping = np.argsort(batch_keys, kind="stable")
        return (
            self.blocks[block].numbers()[order],
            grouping.reshape(self._steps[block], self.micro_batches_per_step),
        )


def share_out(micro_batches: tuple[MicroBatch, ...], ranks: int) -> list[list[int]]:
    """Returns the indices of the micro-batches of each rank, so that all have nearly equal work.

    Largest first, each to the rank with the least so far; no rank is left without one.
    """
    shares: list[list[int]] = [[] for _ in range(ranks)]
    costs = [0] * ranks
    for number in sorted(range(len(micro_batches)), key=lambda n: (-micro_batches[n].cost, n)):
        rank = min(range(ranks), key=lambda r: (costs[r], len(shares[r]), r))
        shares[rank].append(number)
        costs[rank] += micro_batches[number].cost
    return [sorted(share) for share in shares]


def _cells(lengths: Lengths) -> _Cells:
    grain = np.maximum(1, lengths // GRAIN_SHARE)
    rounded = -(-lengths // grain) * grain
    source, target = rounded[:, 0].astype(np.int64), rounded[:, 1].astype(np.int64)
    span = int(source.max()) + 1
    # Source lengths run up and down in turn, so that the last cell of one target length is like
    # the first of the next.
    source_rank = np.where(_ranks(target)[0] % 2 == 0, source, span - 1 - source)
    of_pair, sizes = _ranks(target * span + source_rank)
    widths = np.zeros(len(sizes), dtype=lengths.dtype)
    np.maximum.at(widths, of_pair, np.maximum(lengths[:, 0], lengths[:, 1]))
    smallest = np.min_scalar_type(len(sizes))
    return _Cells(of_pair.astype(smallest), sizes.tolist(), widths.tolist())


def _ranks(
    values: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the rank of each value among the distinct ones, and how often each of these occurs.

    By counting, which takes a tenth of the time of sorting (4.5 million pairs, 2026-11).
    """
    if int(values.max()) >= MOST_COUNTED:
        _, ranks, counts = np.unique(values, return_inverse=True, return_counts=True)
        return ranks, counts
    counts = np.bincount(values)
    rank_of_value = np.cumsum(counts > 0) - 1
    return rank_of_value[values], counts[counts > 0]


def _argsort(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Sorts as a stable sort does, in half the time, since random keys are hardly ever equal."""
    order = np.argsort(keys)
    in_order = keys[order]
    if (in_order[1:] == in_order[:-1]).any():
        return np.argsort(keys, kind="stable")
    return order


def _cut(cells: _Cells, budget: int) -> list[int]:
    """Returns bounds, in cell order, of micro-batches of at most `budget` padded tokens."""
    bounds = [0]
    end = count = width = 0
    for size, cell_width in zip(cells.sizes, cells.widths, strict=True):
        remaining = size
        while remaining:
            room = budget // max(width, cell_width) - count
            if room <= 0:
                bounds.append(end)
                count = width = 0
                continue
            taken = min(room, remaining)
            count, end, width = count + taken, end + taken, max(width, cell_width)
            remaining -= taken
    return [*bounds, end]


def _cut_into(cells: _Cells, wanted: int, largest_budget: int) -> npt.NDArray[np.int64]:
    """Returns bounds of exactly `wanted` micro-batches, as equal in padded tokens as possible."""
    low, high = max(cells.widths), largest_budget
    while low < high:
        budget = (low + high) // 2
        if len(_cut(cells, budget)) - 1 <= wanted:
            high = budget
        else:
            low = budget + 1
    bounds = np.array(_cut(cells, high), dtype=np.int64)
    while (missing := wanted - (len(bounds) - 1)) > 0:
        sizes = np.diff(bounds)
        largest = np.argsort(-sizes, kind="stable")[: min(missing, int((sizes > 1).sum()))]
        halves = bounds[largest] + sizes[largest] // 2
        bounds = np.sort(np.concatenate([bounds, halves]))
    return bounds
