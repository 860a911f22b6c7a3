"""How gradients travel between ranks: an all-reduce that overlaps with backward."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from dragoman.distributed.group import Group


def synchronized(objective: nn.Module, group: Group) -> nn.Module:
    """The module whose backward leaves the mean of all ranks' gradients on each of them.

    Collective: every rank must call; weights are taken from rank 0.
    """
    if group.ranks == 1:
        return objective
    devices: list[torch.device] | None = [group.device] if group.device.type == "cuda" else None
    return DistributedDataParallel(objective, device_ids=devices, gradient_as_bucket_view=True)


def without_travel(objective: nn.Module) -> AbstractContextManager[None]:
    """Around forward and backward of every micro-batch but a rank's last: gradients only add up."""
    if isinstance(objective, DistributedDataParallel):
        return objective.no_sync()
    return nullcontext()
