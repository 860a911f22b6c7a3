"""What checkpoints hold where ranks take steps of their own (`sync.mode` local and diloco).

Checkpoints are saved when the weights are common, but every island has moments of its own: for the
same run to go on, each needs its own again. They are many times what a synchronization sends, so
they never cross the network where a host keeps checkpoints of its own: it keeps those of its own
islands, under `name|key@island`. An island that finds none, on a new host or with another number of
ranks, takes those of another, which are as good an estimate of the same gradients.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.checkpoints.checkpoint import Shapes
from dragoman.distributed.group import Group
from dragoman.sync.islands import Islands, members_of
from dragoman.training.tensors import STATE_SEPARATOR

ISLAND = "@"
"""Between the name of a tensor and the island whose it is."""
MOMENTUM = f"{STATE_SEPARATOR}outer_momentum"
"""Ends the name of a weight whose outer momentum it is."""


def keeper_of_each(hosts: Sequence[str], keeps: Sequence[bool]) -> list[int]:
    """Returns for each rank the one that saves its moments; `keeps`: which ranks save at all.

    That is the first of its host that saves, or rank 0, which always does.
    """
    keepers = {host: rank for rank, host in reversed([*enumerate(hosts)]) if keeps[rank]}
    return [keepers.get(host, 0) for host in hosts]


def collect(
    moments: Mapping[str, Tensor], islands: Islands, keepers: Sequence[int], group: Group
) -> dict[str, Tensor]:
    """Returns the moments of all islands whose keeper this rank is, under the names of their files.

    Collective: every rank must call.
    """
    found: dict[str, Tensor] = {}
    for island in range(islands.count):
        first = members_of(islands.of_rank, island)[0]
        keeper = keepers[first]
        if group.rank == first == keeper:
            own = dict(moments)
        elif group.rank == first:
            for tensor in moments.values():
                dist.send(tensor.cpu(), keeper)
            continue
        elif group.rank == keeper:
            own = {name: torch.empty_like(tensor, device="cpu") for name, tensor in moments.items()}
            for tensor in own.values():
                dist.recv(tensor, first)
        else:
            continue
        found |= {f"{name}{ISLAND}{island}": tensor for name, tensor in own.items()}
    return found


def with_momentum(
    moments: Mapping[str, Tensor], momentum: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Returns what a checkpoint holds beside the weights; nothing where no update has been made."""
    if not moments:
        return {}
    return {**moments, **{f"{name}{MOMENTUM}": tensor for name, tensor in momentum.items()}}


def islands_in(names: Iterable[str]) -> list[int]:
    """Returns the islands whose moments are among the tensors of these names, in their order."""
    suffixes = {name.rpartition(ISLAND)[2] for name in names if ISLAND in name}
    return sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())


def own_moments(tensors: Mapping[str, Tensor], island: int) -> dict[str, Tensor]:
    """Returns the moments for an island: its own, or if they are missing, another's."""
    held = islands_in(tensors)
    if not held:
        return {}
    taken = island if island in held else held[island % len(held)]
    end = f"{ISLAND}{taken}"
    return {
        name.removesuffix(end): tensor for name, tensor in tensors.items() if name.endswith(end)
    }


def momentum_in(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the outer momentum by the names of the weights."""
    return {
        name.removesuffix(MOMENTUM): tensor
        for name, tensor in tensors.items()
        if name.endswith(MOMENTUM)
    }


def local_shapes(weights: Shapes, moments: Shapes, held: Sequence[int]) -> Shapes:
    """Returns the shapes of what a checkpoint holds beside the weights."""
    return {
        **{f"{name}{MOMENTUM}": shape for name, shape in weights.items()},
        **{f"{name}{ISLAND}{island}": shape for name, shape in moments.items() for island in held},
    }
