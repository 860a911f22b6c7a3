"""Folders on a disk that may fail at any call: written aside, renamed into place, removed hidden.

All that changes the disk goes through functions of `os`, one system call each, so that
tests/faults/test_kill_points.py can kill and fail between any two of them. Without torch.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from dragoman.checkpoints.names import REMOVED, REPLACED, UNFINISHED, is_unfinished_link
from dragoman.rundir import sync_folder


class Fingerprint(TypedDict):
    bytes: int
    sha256: str


def write_file(path: Path, chunks: Iterable[memoryview | bytes]) -> Fingerprint:
    """Writes and syncs a new file; returns its size and hash."""
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        for chunk in chunks:
            digest.update(chunk)
            left = memoryview(chunk)
            size += len(left)
            while left:
                left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return {"bytes": size, "sha256": digest.hexdigest()}


def put_in_place(beside: Path, folder: Path) -> None:
    """Renames a finished folder into place, replacing one of that name.

    That takes two renames, so until the new folder is there the old one keeps a name by which it
    is found and recognized.
    """
    replaced = folder.with_name(REPLACED + folder.name)
    if folder.exists():
        shutil.rmtree(replaced, ignore_errors=True)
        folder.rename(replaced)
        try:
            beside.rename(folder)
        except BaseException:
            with suppress(OSError):
                replaced.rename(folder)
            raise
    else:
        beside.rename(folder)
    sync_folder(folder.parent)


def remove_folder(folder: Path) -> None:
    """Hides the folder before removing it, so that half a removal never looks like a checkpoint."""
    hidden = folder.with_name(REMOVED + folder.name)
    shutil.rmtree(hidden, ignore_errors=True)
    folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def make_room(root: Path) -> None:
    """Cleans up before a save: removes what a crash left, and restores what it hid."""
    for path in sorted(root.glob(".*")):
        if path.name.startswith((UNFINISHED, REMOVED)):
            shutil.rmtree(path, ignore_errors=True)
        elif is_unfinished_link(path.name):
            with suppress(OSError):
                path.unlink()
        elif path.name.startswith(REPLACED):
            folder = root / path.name.removeprefix(REPLACED)
            if not folder.exists():
                path.rename(folder)


def remove_replaced(root: Path) -> None:
    """Cleans up after a save: removes what it or an earlier save has replaced."""
    for path in sorted(root.glob(f"{REPLACED}*")):
        shutil.rmtree(path, ignore_errors=True)
