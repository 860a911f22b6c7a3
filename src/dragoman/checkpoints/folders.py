"""Folders on a disk that may fail at any call: written beside, put in place, removed unseen.

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
    """Write a new file that lasts, and hash it on the way."""
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
    """Rename a finished folder, over one of that name where there is one.

    Two renames are not one, so the old folder keeps a name by which it is found and taken for what
    it is until the new one is there.
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
    """Out of sight first, so that half a removal does not look like a torn checkpoint."""
    hidden = folder.with_name(REMOVED + folder.name)
    shutil.rmtree(hidden, ignore_errors=True)
    folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def make_room(root: Path) -> None:
    """Before a save: away with what a crash has left, and back with what it has hidden."""
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
    """After a save: what it or one before it has replaced is of no more use."""
    for path in sorted(root.glob(f"{REPLACED}*")):
        shutil.rmtree(path, ignore_errors=True)
