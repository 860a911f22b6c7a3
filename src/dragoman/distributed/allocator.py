"""Keeps what a process frees, so that the kernel need not clear the same pages in every step.

Activations are large blocks, which glibc asks of the kernel one by one and gives back as soon as
they are free; each page of the next one is then a fault. A step of the Multi30k recipe had 8,000 to
15,000 of them and has 200 to 1,000 now (2026-11, docs/log.md).
"""

import ctypes
from contextlib import suppress

# Of <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Lets this process reuse its memory from now on; does nothing without glibc."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, -1)  # never


def give_back_freed_memory() -> None:
    """Returns to the kernel what is free at the moment; does nothing without glibc."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
