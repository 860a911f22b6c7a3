"""Where copies of a checkpoint go: a run's own folder on every host, and a folder in memory.

Without torch.
"""

import hashlib
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dragoman.errors import storage_errors

KEPT_IN_MEMORY = 2
"""The newest, and the one before it while the newest may be incomplete."""


def memory_root(memory_folder: Path, run_root: Path) -> Path:
    """Returns this run's own folder in a folder that all runs of a machine may use."""
    # Two runs of one name in different folders are different runs.
    path = hashlib.sha256(str(run_root.resolve()).encode()).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run_root.resolve().name)
    return memory_folder / f"dragoman-{name}-{path}"


def remove_root(root: Path) -> None:
    """Removes all copies in `root`: the run is finished, or is new and they cannot be its own."""
    shutil.rmtree(root, ignore_errors=True)


def leave_mark(root: Path, nonce: str, rank: int) -> None:
    """Leaves a mark that other hosts find if they share the folder; `nonce` is this attempt's."""
    with storage_errors(root, "leaving a mark for other hosts"):
        root.mkdir(parents=True, exist_ok=True)
        _mark(root, nonce, rank).touch()


def sees_mark(root: Path, nonce: str, ranks: Iterable[int]) -> bool:
    """Returns whether any of `ranks` has left its mark in this folder, so that they share it."""
    # Each by its name: a listing may come from the cache of a network file system.
    return any(_mark(root, nonce, rank).exists() for rank in ranks)


def remove_mark(root: Path, nonce: str, rank: int) -> None:
    with suppress(OSError):
        _mark(root, nonce, rank).unlink()


def remove_old_marks(root: Path) -> None:
    """Removes the marks of earlier attempts whose ranks were killed before they could."""
    for path in root.glob(".seen-*"):
        if re.fullmatch(r"\.seen-[0-9a-f]{16}-\d+", path.name):
            path.unlink(missing_ok=True)


def _mark(root: Path, nonce: str, rank: int) -> Path:
    return root / f".seen-{nonce}-{rank}"
