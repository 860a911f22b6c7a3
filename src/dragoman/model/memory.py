"""Refuses a model that this machine's memory cannot hold, before any of it is allocated.

Without torch.
"""

import psutil

from dragoman.config import ModelSettings
from dragoman.distributed.memory_limits import free_bytes
from dragoman.errors import UserError
from dragoman.model.size import Size

USED_SHARE = 0.8
"""Share of the free memory that is given out: allocators and evaluations need some, too."""


def room_on_cpu(size: Size, workers: int) -> int:
    """Returns the bytes for weights, gradients and activations of each worker of this machine."""
    kept = size.optimizer_bytes + size.average_bytes
    # A save copies what a checkpoint holds while training goes on.
    reserved = kept + size.weight_bytes + kept + size.outer_bytes
    return int(USED_SHARE * free_bytes() / workers) - reserved


def no_room(pieces: int | None, room_bytes: int, workers: int) -> UserError:
    """Returns why no micro-batch can be found for pairs that are so long; None: for any."""
    what, lengths = "the model alone", ""
    if pieces:
        what, lengths = f"one pair of {pieces:,} piece(s)", "data.max_length or "
    return UserError(
        f'training.micro_batch_tokens = "auto" has no memory for {what}: '
        f"{max(0, room_bytes) / 1e9:,.2f} GB are there for the weights, gradients and activations "
        f"of each of {workers} worker(s); lower {lengths}the sizes in model, start fewer "
        "workers, or take a machine with more memory"
    )


def check_memory(model: ModelSettings, vocabulary: int, needed_bytes: int) -> None:
    """`needed_bytes` is what all processes of this machine together allocate for the model."""
    free_bytes = psutil.virtual_memory().available + psutil.swap_memory().free
    if needed_bytes > free_bytes:
        raise UserError(
            f"a model with width {model.width:,}, filter {model.filter:,}, "
            f"{model.encoder_layers:,} and {model.decoder_layers:,} layers and {vocabulary:,} "
            f"pieces needs {needed_bytes / 1e9:,.1f} GB of memory, and {free_bytes / 1e9:,.1f} GB "
            "are free here; make it smaller, or take a machine with more memory"
        )
