"""Averages what the islands have changed."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.sync.islands import Islands
from dragoman.sync.wire import WireKind, average


class MeanChange(NamedTuple):
    tensors: list[Tensor] | None
    """In fp32, with the same bits on all ranks. None if values of any island are not finite."""
    not_finite: list[int]
    """Islands with such values, where this rank speaks for its own."""


@torch.no_grad()
def average_changes(changes: Sequence[Tensor], islands: Islands, wire: WireKind) -> MeanChange:
    """Returns the mean over the islands, of which each counts by its share of the ranks.

    Collective: every rank must call, with the same shapes in the same order.
    """
    if islands.count == 1 or not changes:  # a fragment beside one large tensor may have none
        return MeanChange(list(changes), [])
    mean, not_finite = list(changes), []
    if islands.rank_leads:
        found = average(changes, wire, islands.share, islands.between)
        not_finite = found.non_finite_ranks
        mean = found.tensors or mean
    if islands.spread:
        is_finite = torch.tensor(float(not not_finite), device=changes[0].device)
        first = islands.members[0]
        for tensor in (is_finite, *mean):
            dist.broadcast(tensor, src=first, group=islands.spread)
        return MeanChange(mean if bool(is_finite) else None, not_finite)
    return MeanChange(None if not_finite else mean, not_finite)
