"""What checkpoints hold where ranks take steps of their own (`sync.mode` local and diloco).

A checkpoint's weights are the common ones, but every island has weights and moments of its own: for
the same run to go on, each needs its own again. They are many times what a synchronization sends,
so they never cross the network where a host keeps checkpoints of its own: it keeps those of its own
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
MEAN = f"{STATE_SEPARATOR}outer_mean"
"""Ends the name of a weight on its way, whose mean change it is."""
DEPARTED = f"{STATE_SEPARATOR}outer_departed"
"""Ends the name of a weight on its way, as it was on an island when it set out."""


def keeper_of_each(hosts: Sequence[str], keeps: Sequence[bool]) -> list[int]:
    """Returns for each rank the one that saves its moments; `keeps`: which ranks save at all.

    That is the first of its host that saves, or rank 0, which always does.
    """
    keepers = {host: rank for rank, host in reversed([*enumerate(hosts)]) if keeps[rank]}
    return [keepers.get(host, 0) for host in hosts]


def collect(
    own_tensors: Mapping[str, Tensor], islands: Islands, keepers: Sequence[int], group: Group
) -> dict[str, Tensor]:
    """Returns what all islands have of their own whose keeper this rank is, as files name it.

    Collective: every rank must call.
    """
    found: dict[str, Tensor] = {}
    for island in range(islands.count):
        first = members_of(islands.of_rank, island)[0]
        keeper = keepers[first]
        if group.rank == first == keeper:
            own = dict(own_tensors)
        elif group.rank == first:
            for tensor in own_tensors.values():
                dist.send(tensor.cpu(), keeper)
            continue
        elif group.rank == keeper:
            own = {
                name: torch.empty_like(tensor, device="cpu") for name, tensor in own_tensors.items()
            }
            for tensor in own.values():
                dist.recv(tensor, first)
        else:
            continue
        found |= {f"{name}{ISLAND}{island}": tensor for name, tensor in own.items()}
    return found


def named(tensors: Mapping[str, Tensor], ending: str) -> dict[str, Tensor]:
    return {f"{name}{ending}": tensor for name, tensor in tensors.items()}


def unnamed(tensors: Mapping[str, Tensor], ending: str) -> dict[str, Tensor]:
    """Returns the tensors whose names end so, by the names of their weights."""
    return {
        name.removesuffix(ending): tensor
        for name, tensor in tensors.items()
        if name.endswith(ending)
    }


def islands_in(names: Iterable[str]) -> list[int]:
    """Returns the islands whose moments are among the tensors of these names, in their order."""
    suffixes = {name.rpartition(ISLAND)[2] for name in names if ISLAND in name}
    return sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())


def own_tensors_in(tensors: Mapping[str, Tensor], island: int) -> dict[str, Tensor]:
    """Returns what an island has of its own, or if that is missing, what another has."""
    held = islands_in(tensors)
    if not held:
        return {}
    taken = island if island in held else held[island % len(held)]
    return unnamed(tensors, f"{ISLAND}{taken}")


def local_shapes(weights: Shapes, moments: Shapes, names: Iterable[str]) -> Shapes:
    """Returns the shapes of what a checkpoint with tensors of these names must hold beside the
    weights; `moments` are those of one island, its own weights among them."""
    names = {*names}
    on_their_way = {name: shape for name, shape in weights.items() if f"{name}{MEAN}" in names}
    own = {**moments, **{f"{name}{DEPARTED}": shape for name, shape in on_their_way.items()}}
    return {
        **{f"{name}{MOMENTUM}": shape for name, shape in weights.items()},
        **{f"{name}{MEAN}": shape for name, shape in on_their_way.items()},
        **{
            f"{name}{ISLAND}{island}": shape
            for island in islands_in(names) or [0]
            for name, shape in own.items()
        },
    }
