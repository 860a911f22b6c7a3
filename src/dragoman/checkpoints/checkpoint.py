"""Reads the files of a checkpoint folder. torch is imported where tensors are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors

from dragoman.checkpoints.names import (
    MANIFEST,
    MODEL,
    OPTIMIZER,
    REPLACED,
    STATE,
    TOKENIZER,
    is_checkpoint,
    step_of,
)
from dragoman.checkpoints.schema import read_manifest, read_state_head
from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import read_json, sha256_of

if TYPE_CHECKING:
    from torch import Tensor

Owner = Mapping[str, str]
"""What a checkpoint belongs to: names or hashes of settings, data, ... Kept in the manifest."""
Shapes = Mapping[str, tuple[int, ...]]
"""Name of a tensor -> its shape."""


@dataclass(frozen=True)
class Checkpoint:
    folder: Path

    @property
    def step(self) -> int:
        """As the folder's name has it; of a copy with another name, as its state has it."""
        step = step_of(self.folder.name.removeprefix(REPLACED))
        if step is not None:
            return step
        if not is_checkpoint(self.folder):
            raise UserError(
                f"{self.folder}: is not a checkpoint; it has no {MANIFEST} with a {STATE} beside it"
            )
        return read_state_head(self.folder).step

    def model(self) -> "dict[str, Tensor]":
        return _load_tensors(self.folder / MODEL)

    def optimizer(self) -> "dict[str, Tensor]":
        return _load_tensors(self.folder / OPTIMIZER)

    def state(self) -> dict[str, Any]:
        return read_json(self.folder / STATE)

    def tokenizer_model(self) -> bytes:
        path = self.folder / TOKENIZER
        try:
            return path.read_bytes()
        except OSError as error:
            raise CorruptFileError(f"{path}: cannot be read ({error.strerror})") from error

    def sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in sorted(self.folder.iterdir())}

    def manifest_sha256(self) -> str:
        """Returns the hash of the manifest, equal for equal checkpoints; empty if there is none."""
        path = self.folder / MANIFEST
        return sha256_of(path) if path.is_file() else ""

    def weights_sha256(self) -> str:
        """Returns the hash of the weights, as the manifest has it; empty if there is none."""
        if not (self.folder / MANIFEST).is_file():
            return ""
        saved = read_manifest(self.folder).files.get(MODEL)
        return saved.sha256 if saved else ""


def average(checkpoints: list[Checkpoint]) -> "dict[str, Tensor]":
    """Returns the mean of several checkpoints' weights, summed in fp64."""
    if not checkpoints:
        raise UserError("there are no checkpoints to average; train the run first")
    total = {name: tensor.double() for name, tensor in checkpoints[0].model().items()}
    for checkpoint in checkpoints[1:]:
        weights = checkpoint.model()
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in total.items()}:
            raise UserError(f"{checkpoint.folder}: its model has another shape than the others'")
        for name, tensor in weights.items():
            total[name] += tensor.double()
    return {name: (tensor / len(checkpoints)).float() for name, tensor in total.items()}


def check_tensors(path: Path, shapes: Shapes, may_be_empty: bool = False) -> None:
    """Raises CorruptFileError unless the file holds exactly these tensors, in fp32 and finite."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            if may_be_empty and not found:
                return
            if different := sorted(found.keys() ^ shapes.keys()):
                what = "lacks" if different[0] in shapes else "holds an unknown"
                raise CorruptFileError(f"{path}: {what} tensor {different[0]!r}")
            for name, tensor in found.items():
                # The shape before the values: those of a huge tensor would not fit into memory.
                is_right = tuple(tensor.get_shape()) == shapes[name] and tensor.get_dtype() == "F32"
                if not is_right:
                    raise CorruptFileError(
                        f"{path}: tensor {name!r} is {tensor.get_dtype()} {tensor.get_shape()}, "
                        f"and should be F32 {list(shapes[name])}"
                    )
                if not file.get_tensor(name).isfinite().all():
                    raise CorruptFileError(
                        f"{path}: tensor {name!r} holds values that are not finite"
                    )
    except (OSError, safetensors.SafetensorError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from error


def tensor_names(path: Path) -> list[str]:
    """Returns the names of the tensors in a file, without reading them."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return [*file.keys()]
    except (OSError, safetensors.SafetensorError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from error


def _load_tensors(path: Path) -> "dict[str, Tensor]":
    from safetensors.torch import load_file  # noqa: PLC0415

    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from error
