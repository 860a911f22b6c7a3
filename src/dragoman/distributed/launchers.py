"""What a launcher has said about this process; the only reader of its variables. Without torch."""

import os
from typing import NamedTuple


class Place(NamedTuple):
    local_rank: int
    started_by_launcher: bool
    """False: this process is alone, and no other rank waits for it."""


def place() -> Place:
    """torchrun's variables; without them this process is alone."""
    started = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()
    return Place(int(os.environ.get("LOCAL_RANK", "0")) if started else 0, started)
