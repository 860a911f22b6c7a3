"""How fast this host's disk takes what has to survive a power cut: a folder comes in, bytes per
second go out."""

import os
import shutil
import tempfile
import time
from pathlib import Path

from dragoman.errors import storage_errors

FIRST_BYTES = 4_000_000
AIM_S = 0.6
"""Of the second write, whose size follows from the speed of the first."""
MOST_BYTES = 512_000_000
MOST_SHARE_OF_FREE = 0.1


def write_speed(folder: Path) -> float | None:
    """Returns the bytes per second of a write that ends with fsync; None if there is no room.

    The file has no name, so that nothing is left of it however this process ends.
    """
    with storage_errors(folder, "measuring the disk"):
        most = min(MOST_BYTES, int(MOST_SHARE_OF_FREE * shutil.disk_usage(folder).free))
        if most < FIRST_BYTES:
            return None
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            first_s = _seconds(file.fileno(), FIRST_BYTES)
            size = min(most, max(FIRST_BYTES, int(FIRST_BYTES * AIM_S / first_s)))
            return size / _seconds(file.fileno(), size)


def _seconds(descriptor: int, size: int) -> float:
    block = os.urandom(1_000_000)  # nothing on the way can compress it
    os.lseek(descriptor, 0, os.SEEK_SET)
    begun = time.perf_counter()
    for _ in range(size // len(block)):
        os.write(descriptor, block)
    os.fsync(descriptor)
    return max(1e-6, time.perf_counter() - begun)
