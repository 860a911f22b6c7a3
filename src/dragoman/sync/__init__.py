"""Synchronizes gradients between ranks.

A rank's part of a step is `begin_step`, then `forward` of each of its micro-batches followed by
backward; the last backward leaves the sum of all ranks' gradients.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

from dragoman.config import SyncSettings
from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.sync.islands import Islands, form_islands
from dragoman.sync.memory import free_memory, is_out_of_memory
from dragoman.sync.replicas import Replicas
from dragoman.sync.stopwatch import Mark, Stopwatch

if TYPE_CHECKING:
    from dragoman.sync.sharded import Sharded

__all__ = [
    "Islands",
    "Mark",
    "Replicas",
    "Stopwatch",
    "Sync",
    "form_islands",
    "free_memory",
    "is_out_of_memory",
    "synchronized",
]

Sync: TypeAlias = "Replicas | Sharded"


def synchronized(
    objective: Objective,
    group: Group,
    islands: Islands,
    settings: SyncSettings,
    sharding: Literal["none", "full"],
) -> Sync:
    """Wraps this rank's model for synchronization. Collective: every rank must call.

    If sharded, its parameters are different objects from now on.
    """
    if sharding == "full" and group.ranks > 1:
        # A second of imports that few runs need.
        from dragoman.sync.sharded import Sharded  # noqa: PLC0415

        return Sharded(objective, group)
    return Replicas(objective, group, islands, in_bf16=settings.mode == "bf16")
