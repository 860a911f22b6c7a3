"""The JSON files of a checkpoint: manifest.json and state.json come in, checked values go out.

Without torch.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from dragoman.checkpoints.names import MANIFEST, STATE
from dragoman.config import LARGEST_INTEGER, ModelSettings, StepsOrZero, between
from dragoman.errors import CorruptFileError
from dragoman.jsonfile import read_model
from dragoman.rundir import sha256_of


class _Record(BaseModel):
    """Ignores keys that a later version has added."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", protected_namespaces=())


class SavedFile(_Record):
    """Size and hash of a file when it was saved."""

    bytes: Annotated[int, between(0, LARGEST_INTEGER)]
    sha256: str


class Manifest(_Record):
    step: StepsOrZero | None = None
    owner: dict[str, str] = {}
    files: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")], SavedFile]


class StateHead(_Record):
    """What the state of every format has."""

    format: Annotated[int, between(1, LARGEST_INTEGER)] = 1
    step: StepsOrZero


class State(StateHead):
    run: dict[str, Any]
    """Progress of the run; `training.state.RunState` defines its content."""
    model: ModelSettings
    vocabulary: Annotated[int, between(1, 100_000_000)]
    source_language: str = ""
    target_language: str = ""


def read_manifest(folder: Path) -> Manifest:
    return read_model(folder / MANIFEST, Manifest)


def read_state_head(folder: Path) -> StateHead:
    return read_model(folder / STATE, StateHead)


def read_state(folder: Path) -> State:
    return read_model(folder / STATE, State)


def is_whole(path: Path, saved: SavedFile) -> bool:
    try:
        check_file(path, saved)
    except CorruptFileError:
        return False
    return True


def check_file(path: Path, saved: SavedFile) -> None:
    """Raises CorruptFileError unless the file has the size and the hash that it was saved with."""
    try:
        if not path.is_file():
            raise CorruptFileError(f"{path}: is missing")
        if path.stat().st_size != saved.bytes:
            raise CorruptFileError(
                f"{path}: has {path.stat().st_size} bytes instead of {saved.bytes}"
            )
        if sha256_of(path) != saved.sha256:
            raise CorruptFileError(f"{path}: its content is not what was saved")
    except OSError as error:
        raise CorruptFileError(f"{path}: cannot be read ({error.strerror})") from error
