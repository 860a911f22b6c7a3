"""Saving, verifying, finding and pruning checkpoint folders."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman.checkpoints.names import (
    MANIFEST,
    MODEL,
    OPTIMIZER,
    STATE,
    TOKENIZER,
    folder_of,
    step_of,
)
from dragoman.console import warn
from dragoman.errors import CorruptFileError, RunError, UserError, storage_errors
from dragoman.rundir import read_json, sha256_of, sync_folder, write_json, write_whole

FORMAT = 1

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    folder: Path

    @property
    def step(self) -> int:
        step = step_of(self.folder.name)
        if step is None:
            raise UserError(
                f"{self.folder}: is not a checkpoint; its name should be like {folder_of(1000)}"
            )
        return step

    def model(self) -> dict[str, Tensor]:
        return _load_tensors(self.folder / MODEL)

    def optimizer(self) -> dict[str, Tensor]:
        return _load_tensors(self.folder / OPTIMIZER)

    def state(self) -> dict[str, Any]:
        return read_json(self.folder / STATE)

    def tokenizer_model(self) -> bytes:
        return (self.folder / TOKENIZER).read_bytes()

    def sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in sorted(self.folder.iterdir())}


def save_checkpoint(
    root: Path,
    step: int,
    model: Tensors,
    optimizer: Tensors,
    state: Mapping[str, Any],
    tokenizer_model: bytes,
) -> Checkpoint:
    """Write beside, make it last, then rename: a crash at any moment leaves the older ones."""
    folder = root / folder_of(step)
    beside = root / f".unfinished-{folder.name}-{os.getpid()}"
    with storage_errors(folder, "saving a checkpoint"):
        root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        try:
            beside.mkdir()
            _save_tensors(beside / MODEL, model)
            _save_tensors(beside / OPTIMIZER, optimizer)
            write_json(beside / STATE, {"format": FORMAT, "step": step, **state})
            write_whole(beside / TOKENIZER, tokenizer_model)
            write_json(beside / MANIFEST, {"files": _fingerprints(beside)})
            sync_folder(beside)
            if folder.exists():  # of an earlier attempt, and not whole, or it would have been used
                shutil.rmtree(folder)
            beside.rename(folder)
            sync_folder(root)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    return Checkpoint(folder)


def verify(checkpoint: Checkpoint) -> None:
    """Raise CorruptFileError unless every file is there with its size and hash."""
    folder = checkpoint.folder
    expected = read_json(folder / MANIFEST).get("files")
    if not isinstance(expected, dict):
        raise CorruptFileError(f"{folder / MANIFEST}: lists no files")
    for name, fingerprint in expected.items():
        path = folder / name
        if not path.is_file():
            raise CorruptFileError(f"{path}: is missing")
        if path.stat().st_size != fingerprint["bytes"]:
            raise CorruptFileError(
                f"{path}: has {path.stat().st_size} bytes instead of {fingerprint['bytes']}"
            )
        if sha256_of(path) != fingerprint["sha256"]:
            raise CorruptFileError(f"{path}: its content is not what was saved")
    if checkpoint.state().get("step") != checkpoint.step:
        raise CorruptFileError(f"{folder}: holds the state of another step than its name says")


def all_checkpoints(root: Path) -> list[Checkpoint]:
    """Every folder that is named like a checkpoint, oldest first, whole or not."""
    if not root.is_dir():
        return []
    found = [Checkpoint(path) for path in root.iterdir() if step_of(path.name) and path.is_dir()]
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def newest_whole(root: Path) -> Checkpoint | None:
    """The newest checkpoint that verifies; None when there is none at all."""
    candidates = all_checkpoints(root)
    for checkpoint in reversed(candidates):
        try:
            verify(checkpoint)
        except CorruptFileError as error:
            warn(f"{error}; checkpoint {checkpoint.folder.name} is skipped")
        else:
            return checkpoint
    if candidates:
        raise RunError(
            f"{root}: none of its {len(candidates)} checkpoints is whole; move the folder away "
            "to start the run again from step 0"
        )
    return None


def find_checkpoint(root: Path, which: str) -> Checkpoint:
    """`which` is best, latest or a step; what it names must verify."""
    if which in ("best", "latest"):
        link = root / which
        if link.exists():
            checkpoint = Checkpoint(link.resolve())
        elif newest := newest_whole(root):
            return newest
        else:
            raise UserError(f"{root}: holds no checkpoint yet; train the run first")
    elif which.isdecimal():
        checkpoint = Checkpoint(root / folder_of(int(which)))
        if not checkpoint.folder.is_dir():
            steps = ", ".join(str(c.step) for c in all_checkpoints(root)) or "none"
            raise UserError(f"{root}: has no checkpoint of step {which}; there are: {steps}")
    else:
        raise UserError(f"checkpoint {which!r} should be best, latest or the number of a step")
    verify(checkpoint)
    return checkpoint


def point_to(root: Path, name: str, checkpoint: Checkpoint) -> None:
    """Set the link `latest` or `best` in one step."""
    with storage_errors(root / name, "setting a link"):
        beside = root / f".{name}-{os.getpid()}"
        beside.unlink(missing_ok=True)
        beside.symlink_to(checkpoint.folder.name)
        beside.replace(root / name)


def prune(root: Path, keep: Iterable[int]) -> list[int]:
    """Remove the checkpoints of all steps but `keep`, and what crashes left; the steps removed."""
    kept = set(keep)
    removed = []
    for checkpoint in all_checkpoints(root):
        if checkpoint.step not in kept:
            shutil.rmtree(checkpoint.folder, ignore_errors=True)
            removed.append(checkpoint.step)
    for leftover in root.glob(".unfinished-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    return removed


def average(checkpoints: list[Checkpoint]) -> dict[str, Tensor]:
    """The mean of several checkpoints' weights, added up in fp64."""
    if not checkpoints:
        raise UserError("there is no checkpoint to average; train the run first")
    total = {name: tensor.double() for name, tensor in checkpoints[0].model().items()}
    for checkpoint in checkpoints[1:]:
        weights = checkpoint.model()
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in total.items()}:
            raise UserError(f"{checkpoint.folder}: its model has another shape than the others'")
        for name, tensor in weights.items():
            total[name] += tensor.double()
    return {name: (tensor / len(checkpoints)).float() for name, tensor in total.items()}


def _save_tensors(path: Path, tensors: Tensors) -> None:
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    except safetensors.SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(0o644)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from error


def _fingerprints(folder: Path) -> dict[str, dict[str, int | str]]:
    return {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.iterdir())
    }
