"""Averages what the islands have changed; how it travels is decided here, and nowhere else."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.sync.islands import Islands


@torch.no_grad()
def average_differences(differences: Sequence[Tensor], islands: Islands) -> None:
    """Replaces each tensor by its mean over the islands, in fp32, with the same bits on all ranks.

    An island counts by its share of the ranks, which is its share of the work. Collective: every
    rank must call.
    """
    if islands.count == 1:
        return
    if islands.rank_leads:
        torch._foreach_mul_(list(differences), islands.share)
        # Begun together: the next one travels while the last one is added up.
        works = [
            dist.all_reduce(tensor, group=islands.between, async_op=True) for tensor in differences
        ]
        for work in works:
            assert work
            work.wait()
    if islands.inside:
        for tensor in differences:
            dist.broadcast(tensor, src=islands.members[0], group=islands.inside)
