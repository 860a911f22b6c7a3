"""Refuses a model that this machine's memory cannot hold, before any of it is allocated.

Without torch.
"""

import psutil

from dragoman.config import ModelSettings
from dragoman.errors import UserError


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
