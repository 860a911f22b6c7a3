"""Saving, verifying, finding and pruning checkpoint folders."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load_file
from torch import Tensor

from dragoman.checkpoints import names, tensorfile
from dragoman.checkpoints.folders import (
    Fingerprint,
    make_room,
    put_in_place,
    remove_folder,
    remove_replaced,
    write_file,
)
from dragoman.checkpoints.names import (
    MANIFEST,
    MODEL,
    OPTIMIZER,
    REPLACED,
    STATE,
    TOKENIZER,
    UNFINISHED,
    folder_of,
    step_of,
)
from dragoman.checkpoints.tensorfile import TensorImage
from dragoman.console import warn
from dragoman.errors import CorruptFileError, RunError, UserError, storage_errors
from dragoman.rundir import read_json, sha256_of, sync_folder

FORMAT = 1

Tensors = tensorfile.Tensors

Owner = Mapping[str, str]
"""Whose a checkpoint is: what -> its name or hash, as settings, data. Kept in the manifest."""


@dataclass(frozen=True)
class Checkpoint:
    folder: Path

    @property
    def step(self) -> int:
        step = step_of(self.folder.name.removeprefix(REPLACED))
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

    def manifest_sha256(self) -> str:
        """Equal manifests mean equal checkpoints; empty: there is none."""
        path = self.folder / MANIFEST
        return sha256_of(path) if path.is_file() else ""


@dataclass(frozen=True)
class Snapshot:
    """All that a checkpoint holds, in memory of its own."""

    step: int
    model: TensorImage
    optimizer: TensorImage
    state: bytes
    tokenizer_model: bytes
    owner: Owner

    def write(self, folder: Path) -> int:
        """The files, the manifest last; how many bytes."""
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
    """Save while the caller waits; `BackgroundSaver` is for those who cannot."""
    images = TensorImage(), TensorImage()
    for image, tensors in zip(images, (model, optimizer), strict=True):
        image.take({name: tensor.cpu() for name, tensor in tensors.items()})
    snapshot = Snapshot(step, *images, state_file(step, state), tokenizer_model, owner or {})
    checkpoint, _ = save_snapshot(root, snapshot)
    return checkpoint


def save_snapshot(root: Path, snapshot: Snapshot) -> tuple[Checkpoint, int]:
    """Write beside, make it last, then rename: a crash at any moment leaves the older ones.

    Also how many bytes were written.
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


def verify(checkpoint: Checkpoint, owner: Owner | None = None) -> None:
    """Raise CorruptFileError unless every file is there with its size and hash.

    With an `owner`: and unless it is that one's, as far as its manifest says whose it is.
    """
    folder = checkpoint.folder
    manifest = read_json(folder / MANIFEST)
    if manifest.get("step", checkpoint.step) != checkpoint.step:
        raise CorruptFileError(f"{folder}: is called another step than its manifest says")
    _check_owner(folder, manifest.get("owner", {}), owner or {})
    files = manifest.get("files")
    if not isinstance(files, dict):
        raise CorruptFileError(f"{folder / MANIFEST}: lists no files")
    if missing := {MODEL, OPTIMIZER, STATE, TOKENIZER} - files.keys():
        raise CorruptFileError(f"{folder / MANIFEST}: does not list {', '.join(sorted(missing))}")
    for name, fingerprint in files.items():
        _check_file(folder / name, fingerprint)
    if checkpoint.state().get("step") != checkpoint.step:
        raise CorruptFileError(f"{folder}: holds the state of another step than its name says")


def all_checkpoints(root: Path) -> list[Checkpoint]:
    """Every folder that is named like a checkpoint, oldest first, whole or not."""
    found = {checkpoint.step: checkpoint for checkpoint in _candidates(root)}
    return [found[step] for step in sorted(found)]


def newest_whole(roots: Path | Sequence[Path], owner: Owner | None = None) -> Checkpoint | None:
    """The newest checkpoint that verifies, in any of `roots`; None when there is none at all.

    Of two that are equally new, the one in the root that is named first.
    """
    roots = [roots] if isinstance(roots, Path) else roots
    candidates: list[Checkpoint] = []
    unreadable = False
    for root in reversed(roots):
        try:
            candidates += _candidates(root)
        except OSError as error:
            warn(f"{root}: cannot be read ({error.strerror}); its checkpoints are skipped")
            unreadable = True
    candidates.sort(key=lambda checkpoint: checkpoint.step)  # stable: the best choice is last
    for checkpoint in reversed(candidates):
        try:
            verify(checkpoint, owner)
        except CorruptFileError as error:
            warn(f"{error}; checkpoint {checkpoint.folder.name} is skipped")
        else:
            return checkpoint
    where = ", ".join(str(root) for root in roots)
    if candidates:
        raise RunError(
            f"{where}: none of its {len(candidates)} checkpoints is whole; move the folder away "
            "to start the run again from step 0"
        )
    if unreadable:
        raise RunError(f"{where}: cannot be read; mend the disk, or name another --run")
    return None


def find_equal(roots: Sequence[Path], step: int, manifest_sha256: str) -> Checkpoint | None:
    """The checkpoint of a step that has this manifest, which someone else has verified."""
    for root in roots:
        for folder in (folder_of(step), REPLACED + folder_of(step)):
            checkpoint = Checkpoint(root / folder)
            if manifest_sha256 and checkpoint.manifest_sha256() == manifest_sha256:
                return checkpoint
    return None


def find_checkpoint(root: Path, which: str) -> Checkpoint:
    """`which` is best, latest or a step; what it names must verify."""
    if which in (names.BEST, names.LATEST):
        link = root / which
        if link.exists():
            checkpoint = Checkpoint(link.resolve())
        elif newest := newest_whole(root):
            return newest
        else:
            raise UserError(f"{root}: holds no checkpoint yet; train the run first")
    elif which.isdecimal():
        found = {checkpoint.step: checkpoint for checkpoint in all_checkpoints(root)}
        if int(which) not in found:
            steps = ", ".join(str(step) for step in found) or "none"
            raise UserError(f"{root}: has no checkpoint of step {which}; there are: {steps}")
        checkpoint = found[int(which)]
    else:
        raise UserError(f"checkpoint {which!r} should be best, latest or the number of a step")
    verify(checkpoint)
    return checkpoint


def point_to(root: Path, name: str, checkpoint: Checkpoint) -> None:
    """Set the link `latest` or `best` in one step."""
    names.point_to(root, name, checkpoint.folder.name)


def prune(root: Path, keep: Iterable[int]) -> list[int]:
    """Remove the checkpoints of all steps but `keep`, and what crashes left; the steps removed."""
    kept = set(keep)
    removed = []
    with storage_errors(root, "removing old checkpoints"):
        for checkpoint in all_checkpoints(root):
            if checkpoint.step not in kept:
                remove_folder(checkpoint.folder)
                removed.append(checkpoint.step)
        make_room(root)
    remove_replaced(root)
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


def _candidates(root: Path) -> list[Checkpoint]:
    """Whatever may be a checkpoint; of one step, what was replaced before what replaced it."""
    if not root.is_dir():
        return []
    found = [
        Checkpoint(path)
        for path in root.iterdir()
        if step_of(path.name.removeprefix(REPLACED)) is not None and path.is_dir()
    ]
    return sorted(found, key=lambda c: (c.step, not c.folder.name.startswith(REPLACED)))


def _check_owner(folder: Path, theirs: Any, ours: Owner) -> None:
    if not isinstance(theirs, dict):
        raise CorruptFileError(f"{folder / MANIFEST}: does not say whose it is")
    for what in ours.keys() & theirs.keys():
        if theirs[what] != ours[what]:
            raise CorruptFileError(
                f"{folder}: belongs to another run: its {what} is {theirs[what]!r}, "
                f"and this run's {ours[what]!r}"
            )


def _check_file(path: Path, fingerprint: Any) -> None:
    match fingerprint:
        case {"bytes": int(size), "sha256": str(sha256)}:
            pass
        case _:
            raise CorruptFileError(f"{path}: its manifest does not say what it should hold")
    try:
        if not path.is_file():
            raise CorruptFileError(f"{path}: is missing")
        if path.stat().st_size != size:
            raise CorruptFileError(f"{path}: has {path.stat().st_size} bytes instead of {size}")
        if sha256_of(path) != sha256:
            raise CorruptFileError(f"{path}: its content is not what was saved")
    except OSError as error:
        raise CorruptFileError(f"{path}: cannot be read ({error.strerror})") from error


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from error
