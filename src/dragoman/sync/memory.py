"""Recognizes out-of-memory errors, and frees memory."""

import gc

import torch

from dragoman.distributed.allocator import give_back_freed_memory

# torch has an exception of its own only for CUDA's allocator.
_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


def free_memory(device: torch.device) -> None:
    """Frees memory that nothing refers to any more."""
    gc.collect()  # modules and autograd graphs have cycles
    give_back_freed_memory()
    if device.type == "cuda":
        torch.cuda.empty_cache()
