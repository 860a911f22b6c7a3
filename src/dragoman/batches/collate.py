"""Turns pairs of ids into the tensors of one micro-batch."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor

from dragoman.shards.files import PairIds


@dataclass(frozen=True)
class SourceBatch:
    source_BS: Tensor
    source_mask: Tensor | None
    """[B, 1, 1, S], True where there is a token; None if no sentence is padded."""

    def to(self, device: torch.device) -> Self:
        """Returns the same batch on another device; asynchronous from pinned memory."""
        if device.type == "cpu":
            return self
        moved = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                value = value.pin_memory().to(device, non_blocking=True)
            moved[field.name] = value
        return type(self)(**moved)


@dataclass(frozen=True)
class Batch(SourceBatch):
    """A micro-batch. Target tokens without padding are picked by position, N of them."""

    target_in_BT: Tensor
    target_out_N: Tensor
    token_positions_N: Tensor


def collate(pairs: Sequence[PairIds], start: int, padding: int) -> Batch:
    """Returns one batch; `start` is put before each target. Both sides include their end piece."""
    sources = collate_sources([source for source, _ in pairs], padding)
    targets = [target for _, target in pairs]
    lengths = np.array([len(target) for target in targets])
    target_in = np.full((len(pairs), int(lengths.max())), padding, dtype=np.int64)
    target_in[:, 0] = start
    for row, target in zip(target_in, targets, strict=True):
        row[1 : len(target)] = target[:-1]
    positions = np.flatnonzero(np.arange(target_in.shape[1]) < lengths[:, None])
    return Batch(
        sources.source_BS,
        sources.source_mask,
        torch.from_numpy(target_in),
        torch.from_numpy(np.concatenate(targets).astype(np.int64)),
        torch.from_numpy(positions),
    )


def smallest_batch() -> Batch:
    """Returns one pair of one piece each, for a pass that only has to take place."""
    return collate([PairIds([0], [0])], start=0, padding=0)


def cut(batch: Batch, pieces: int) -> list[Batch]:
    """Splits a micro-batch into that many smaller ones, or into as many as there are pairs."""
    pairs, width = batch.target_in_BT.shape
    count = min(pieces, pairs)
    row_of_token_N = batch.token_positions_N // width
    cuts = []
    for begin, end in pairwise(pairs * number // count for number in range(count + 1)):
        tokens = (row_of_token_N >= begin) & (row_of_token_N < end)
        cuts.append(
            Batch(
                batch.source_BS[begin:end],
                None if batch.source_mask is None else batch.source_mask[begin:end],
                batch.target_in_BT[begin:end],
                batch.target_out_N[tokens],
                batch.token_positions_N[tokens] - begin * width,
            )
        )
    return cuts


def collate_sources(
    sources: Sequence[Sequence[int] | np.ndarray[tuple[int], np.dtype[np.integer]]], padding: int
) -> SourceBatch:
    lengths = np.array([len(source) for source in sources])
    longest = int(lengths.max())
    ids = np.full((len(sources), longest), padding, dtype=np.int64)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source)] = source
    mask = None
    if lengths.min() < longest:
        mask = torch.from_numpy(np.arange(longest) < lengths[:, None])[:, None, None, :]
    return SourceBatch(torch.from_numpy(ids), mask)
