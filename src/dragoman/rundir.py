"""The run directory: names of its files, and writes that are whole or do not happen."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import CorruptFileError, storage_errors


@dataclass(frozen=True)
class RunDir:
    """Where everything of a run stands; the contract between training and all that reads it."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    @property
    def status(self) -> Path:
        return self.root / "status.json"

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def tensorboard(self) -> Path:
        return self.root / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def report(self, suffix: str) -> Path:
        return self.root / f"report.{suffix}"

    def evaluation(self, split: str) -> Path:
        return self.root / f"evaluation-{split}.json"

    def events_of(self, attempt: int, rank: int) -> Path:
        return self.events / f"attempt-{attempt:03d}-rank-{rank:04d}.jsonl"


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace `path` in one step: a reader sees the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content
    with storage_errors(path, f"writing {path.name}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(beside).chmod(0o644)
            Path(beside).replace(path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CorruptFileError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(content, dict):
        raise CorruptFileError(f"{path}: should hold one JSON object")
    return content


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(path: Path) -> None:
    """Make renames inside `path` survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
