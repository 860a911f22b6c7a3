"""Saves and prunes checkpoint folders."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.checkpoints import tensorfile
from dragoman.checkpoints.checkpoint import Checkpoint, Owner
from dragoman.checkpoints.finding import all_checkpoints, is_foreign
from dragoman.checkpoints.folders import (
    Fingerprint,
    make_room,
    put_in_place,
    remove_folder,
    remove_replaced,
    write_file,
)
from dragoman.checkpoints.names import (
    FORMAT,
    MANIFEST,
    MODEL,
    OPTIMIZER,
    STATE,
    TOKENIZER,
    UNFINISHED,
    folder_of,
)
from dragoman.checkpoints.tensorfile import TensorImage
from dragoman.errors import storage_errors
from dragoman.rundir import sync_folder

Tensors = tensorfile.Tensors


@dataclass(frozen=True)
class Snapshot:
    """Everything in a checkpoint, in memory of its own."""

    step: int
    model: TensorImage
    optimizer: TensorImage
    state: bytes
    tokenizer_model: bytes
    owner: Owner

    def write(self, folder: Path) -> int:
        """Writes the files, the manifest last; returns the number of bytes."""
        files: dict[str, Fingerprint] = {
            MODEL: write_file(folder / MODEL, self.model.chunks()),
            OPTIMIZER: write_file(folder / OPTIMIZER, self.optimizer.chunks()),
            STATE: write_file(folder / STATE, [self.state]),
            TOKENIZER: write_file(folder / TOKENIZER, [self.tokenizer_model]),
        }
        manifest = {"step": self.step, "owner": dict(self.owner), "files": files}
        own = write_file(folder / MANIFEST, [to_json(manifest)])
        return sum(file["bytes"] for file in (*files.values(), own))


def to_json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def state_file(step: int, state: Mapping[str, Any]) -> bytes:
    return to_json({"format": FORMAT, "step": step, **state})


def save_checkpoint(
    root: Path,
    step: int,
    model: Tensors,
    optimizer: Tensors,
    state: Mapping[str, Any],
    tokenizer_model: bytes,
    owner: Owner | None = None,
) -> Checkpoint:
    """Saves while the caller waits; see `BackgroundSaver` for saving in the background."""
    images = TensorImage(), TensorImage()
    for image, tensors in zip(images, (model, optimizer), strict=True):
        image.take({name: tensor.cpu() for name, tensor in tensors.items()})
    snapshot = Snapshot(step, *images, state_file(step, state), tokenizer_model, owner or {})
    checkpoint, _ = save_snapshot(root, snapshot)
    return checkpoint


def save_snapshot(root: Path, snapshot: Snapshot) -> tuple[Checkpoint, int]:
    """Writes to a temporary folder, syncs it, then renames: a crash keeps the older checkpoints.

    Returns the checkpoint and the number of bytes written.
    """
    folder = root / folder_of(snapshot.step)
    beside = root / f"{UNFINISHED}{folder.name}-{os.getpid()}"
    with storage_errors(folder, "saving a checkpoint"):
        if not root.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            sync_folder(root.parent)
        make_room(root)
        try:
            beside.mkdir()
            size = snapshot.write(beside)
            sync_folder(beside)
            put_in_place(beside, folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    return Checkpoint(folder), size


def prune(root: Path, keep: Iterable[int], owner: Owner) -> list[int]:
    """Removes the owner's checkpoints except the steps in `keep`, and what crashes left.

    Returns the steps removed. Checkpoints of another run were put there by the user, and stay.
    """
    kept = set(keep)
    removed = []
    with storage_errors(root, "removing old checkpoints"):
        for checkpoint in all_checkpoints(root):
            if checkpoint.step not in kept and not is_foreign(checkpoint, owner):
                remove_folder(checkpoint.folder)
                removed.append(checkpoint.step)
        make_room(root)
    remove_replaced(root)
    return removed
