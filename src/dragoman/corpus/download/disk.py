"""What downloads and archives need of a disk: complete files, free space, and locks."""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.console import Progress
from dragoman.errors import StorageError, storage_errors

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
KEEP_FREE_BYTES = 100_000_000
"""Space that downloads and archives leave free for other programs."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks out other processes, also on shared folders, that would create `path` too.

    The lock file stays: removing it would let two processes hold locks on different files.
    """
    with storage_errors(path, "locking it"):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = beside(path, ".lock").open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info(f"waiting for another process that is creating {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def require_space(size: int, target: Path) -> None:
    """Refuses to write what would fill the disk, before it does."""
    free = shutil.disk_usage(target.parent).free
    if size > free - KEEP_FREE_BYTES:
        reason = (
            f"{size / 1e6:,.0f} MB do not fit into {free / 1e6:,.0f} MB of free space, of which "
            f"{KEEP_FREE_BYTES / 1e6:,.0f} MB are to stay free"
        )
        raise StorageError(target, "writing it", reason)


def chunks(file: IO[bytes], progress: Progress) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
        progress.advance(len(chunk))


def write_chunks(chunks: Iterable[bytes], part: Path, target: Path, append: bool = False) -> None:
    """Writes chunks to `part`; only errors of writing, not of chunks, become storage errors."""
    doing = f"writing {part.name}"
    with storage_errors(target, doing):
        file = part.open("ab" if append else "wb")
    try:
        for chunk in chunks:
            require_space(len(chunk), target)
            with storage_errors(target, doing):
                file.write(chunk)
        with storage_errors(target, doing):
            file.flush()
            os.fsync(file.fileno())
    finally:
        with storage_errors(target, doing):
            file.close()
