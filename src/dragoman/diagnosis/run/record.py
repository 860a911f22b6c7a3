"""Reads the files of a run into one value. A damaged file is named in it and stops nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.checkpoints.names import step_of
from dragoman.config import Config
from dragoman.diagnosis.run.settings import read_settings
from dragoman.diagnosis.run.validate import sane
from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import RunDir, read_json
from dragoman.shards.passport import Passport
from dragoman.telemetry.read.tables import RunTables, read_tables

Content = TypeVar("Content")


class ScoredSplit(BaseModel):
    """evaluation-<split>.json, which `dragoman evaluate` writes."""

    model_config = ConfigDict(frozen=True)

    split: str
    steps: list[int]
    """Of the checkpoints whose weights were averaged; one step: of that checkpoint alone."""
    sentences: int
    beam: int
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    bleu_low: float | None = None
    """With bleu_high the 95 % interval; None: written before there was one."""
    bleu_high: float | None = None
    samples: list[dict[str, str]] = []


class Member(BaseModel):
    """Who took part in an attempt; the place in the list is the rank."""

    model_config = ConfigDict(frozen=True)

    host: str
    device: str


@dataclass(frozen=True)
class CheckpointFolder:
    name: str
    step: int
    file_bytes: dict[str, int]


@dataclass(frozen=True)
class RunRecord:
    root: str
    config: Config
    passport: Passport | None
    members: dict[int, list[Member]]
    """Attempt -> who took part in it."""
    heartbeat_at: float | None
    tables: RunTables
    """Everything that was recorded; `history` says what of it counts."""
    scored: list[ScoredSplit]
    checkpoints: list[CheckpointFolder]
    """Oldest first."""
    best_checkpoint: str
    """Name of the folder that the link `best` points to; empty: none."""
    unreadable: list[str]
    """One sentence for each damaged file, and for all that this version does not understand."""
    read_at: float


def read_run(
    run: RunDir, read_at: float, progress: Callable[[int], None] = lambda read_bytes: None
) -> RunRecord:
    """`read_at` is the present, in seconds since 1970; `progress` is called with bytes read."""
    if not run.config.is_file():
        raise UserError(
            f"{run.root}: is not a run directory, it holds no config.toml; "
            "the folder runs holds what was trained here"
        )
    config, unreadable = read_settings(run.config)

    def readable(path: Path, understand: Callable[[dict[str, Any]], Content]) -> Content | None:
        if not path.exists():
            return None
        try:
            return understand(read_json(path))
        except CorruptFileError as error:
            unreadable.append(str(error))
        except (ValidationError, KeyError, TypeError, ValueError):
            unreadable.append(f"{path}: is not what this version writes, so it was left out")
        return None

    tables, left_out = sane(_tables(run, progress))
    if tables.unread_lines:
        lines = "1 line is" if tables.unread_lines == 1 else f"{tables.unread_lines:,} lines are"
        unreadable.append(
            f"{run.events}: {lines} torn or of a kind that this version does not know, and left out"
        )
    if left_out:
        events = "1 event holds" if left_out == 1 else f"{left_out:,} events hold"
        unreadable.append(f"{run.events}: {events} figures that cannot be, and are left out")
    scored = (readable(path, ScoredSplit.model_validate) for path in _scored_files(run))
    return RunRecord(
        root=str(run.root),
        config=config,
        passport=readable(run.manifest, lambda content: Passport.model_validate(content["data"])),
        members=readable(run.manifest, _members) or {},
        heartbeat_at=readable(run.status, lambda content: float(content["heartbeat_at"])),
        tables=tables,
        scored=[split for split in scored if split],
        checkpoints=_checkpoints(run.checkpoints),
        best_checkpoint=_link_target(run.checkpoints / "best"),
        unreadable=list(dict.fromkeys(unreadable)),
        read_at=read_at,
    )


def _tables(run: RunDir, progress: Callable[[int], None]) -> RunTables:
    try:
        return read_tables(run, progress)
    except OSError as error:
        raise UserError(
            f"{run.events}: cannot be read ({error.strerror or error}); "
            "ask for the right to read what is in it"
        ) from error


def _scored_files(run: RunDir) -> list[Path]:
    """Test comes first: it is the score that counts."""
    found = run.root.glob(run.evaluation("*").name)
    return sorted(found, key=lambda path: (path != run.evaluation("test"), path.name))


def _members(manifest: dict[str, Any]) -> dict[int, list[Member]]:
    return {
        int(attempt["attempt"]): [Member.model_validate(member) for member in attempt["members"]]
        for attempt in manifest["attempts"]
    }


def _checkpoints(root: Path) -> list[CheckpointFolder]:
    folders = [
        CheckpointFolder(path.name, step, _file_bytes(path))
        for path in root.glob("*")
        if (step := step_of(path.name)) is not None
    ]
    return sorted(
        (folder for folder in folders if folder.file_bytes), key=lambda folder: folder.step
    )


def _file_bytes(folder: Path) -> dict[str, int]:
    """Name -> size. Empty for a folder that a running training removes at this moment."""
    try:
        return {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    except OSError:
        return {}


def _link_target(link: Path) -> str:
    return link.resolve().name if link.is_symlink() else ""
