"""Reads all files of a run into one value, which names the files that are damaged."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.checkpoints.names import step_of
from dragoman.config import Config, SyncSettings
from dragoman.diagnosis.run.settings import read_settings
from dragoman.diagnosis.run.validate import validated
from dragoman.errors import CorruptFileError, UserError
from dragoman.evaluation.scores import ScoredSplit, in_order, score_files
from dragoman.model.size import Size, size_of
from dragoman.rundir import RunDir, read_json
from dragoman.shards.passport import Passport
from dragoman.telemetry.events import ForecastMade, SyncChosen
from dragoman.telemetry.read.reader import read_tables
from dragoman.telemetry.read.tables import RunTables, events_at

Content = TypeVar("Content", bound=BaseModel)


class Member(BaseModel):
    """Who took part in an attempt; the place in the list is the rank."""

    model_config = ConfigDict(frozen=True)

    host: str
    device: str


class _Attendance(BaseModel):
    attempt: int
    members: list[Member]
    versions: dict[str, str] = {}
    command: list[str] = []
    launcher: str = ""
    options: list[str] | None = None
    folder: str = ""


class _ManifestData(BaseModel):
    """What manifest.json says of the data. Its parts are read one by one: one may be damaged."""

    data: Passport


class _ManifestAttempts(BaseModel):
    attempts: list[_Attendance]


class _Status(BaseModel):
    """status.json."""

    heartbeat_at: float


@dataclass(frozen=True)
class CheckpointFolder:
    name: str
    step: int
    file_bytes: dict[str, int]


@dataclass(frozen=True)
class Start:
    """How an attempt was started."""

    command: list[str]
    """The command line that was typed; before that was recorded, the one of rank 0."""
    launcher: str
    """dragoman, torchrun, srun or mpirun; empty: none, or not recorded."""
    options: list[str] | None
    """Those of `dragoman train` that say where it runs; None: not recorded."""
    folder: str = ""
    """In which it was started, and to which relative paths of its recipe belong; empty: not
    recorded."""


@dataclass(frozen=True)
class RunRecord:
    directory: RunDir
    config: Config
    passport: Passport | None
    members: dict[int, list[Member]]
    """By attempt."""
    versions: dict[str, str]
    """Of the packages that the last attempt ran with."""
    start: Start
    """Of the last attempt."""
    heartbeat_at: float | None
    tables: RunTables
    """All events, without those that cannot be; `timeline` says which of them count."""
    scored: list[ScoredSplit]
    """Test sets first."""
    checkpoints: list[CheckpointFolder]
    """Oldest first."""
    best_checkpoint: str
    """The folder that the link `best` points to; empty: there is none."""
    unreadable: list[str]
    """One sentence for each damaged file, and for all that this version does not understand."""
    read_at: float

    @property
    def vocabulary(self) -> int:
        """Of the tokenizer; as the settings ask for it, where its data is not known."""
        return self.passport.vocabulary if self.passport else self.config.tokenizer.vocabulary

    @property
    def model_size(self) -> Size:
        return size_of(self.config.model, self.vocabulary, self.config.optimizer, self.config.sync)


def read_run(
    run: RunDir, read_at: float, progress: Callable[[int], None] = lambda read_bytes: None
) -> RunRecord:
    """`read_at` is the present, in seconds since 1970; `progress` is called with bytes read."""
    refuse_other_folders(run)
    config, unreadable = read_settings(run.config)

    def read(path: Path, model: type[Content]) -> Content | None:
        if not path.exists():
            return None
        try:
            return model.model_validate(read_json(path))
        except CorruptFileError as error:
            unreadable.append(str(error))
        except ValidationError:
            unreadable.append(f"{path}: is not what this version writes, so it was left out")
        return None

    tables, left_out = validated(_tables(run, progress))
    if tables.unread_lines:
        lines = "1 line is" if tables.unread_lines == 1 else f"{tables.unread_lines:,} lines are"
        unreadable.append(
            f"{run.events}: {lines} torn or of a kind that this version does not know, and left out"
        )
    if left_out:
        events = "1 event holds" if left_out == 1 else f"{left_out:,} events hold"
        unreadable.append(f"{run.events}: {events} figures that cannot be, and are left out")
    scored = (read(path, ScoredSplit) for path in score_files(run))
    data = read(run.manifest, _ManifestData)
    manifest = read(run.manifest, _ManifestAttempts)
    attendance = manifest.attempts if manifest else []
    status = read(run.status, _Status)
    return RunRecord(
        directory=_named(run),
        config=with_prices(_with_chosen_sync(config, tables), _newest_forecast(tables)),
        passport=data.data if data else None,
        members={each.attempt: each.members for each in attendance},
        versions=attendance[-1].versions if attendance else {},
        start=_start(attendance),
        heartbeat_at=status.heartbeat_at if status else None,
        tables=tables,
        scored=in_order(split for split in scored if split),
        checkpoints=_checkpoints(run.checkpoints),
        best_checkpoint=_link_target(run.checkpoints / "best"),
        unreadable=list(dict.fromkeys(unreadable)),
        read_at=read_at,
    )


def refuse_other_folders(run: RunDir) -> None:
    if not run.config.is_file():
        raise UserError(
            f"{run.root}: is not a run directory, it holds no config.toml; "
            "the folder runs holds what was trained here"
        )


def read_members(run: RunDir) -> dict[int, list[Member]]:
    """Returns who took part in each attempt; none where the manifest is damaged or not there."""
    try:
        manifest = _ManifestAttempts.model_validate(read_json(run.manifest))
    except (CorruptFileError, ValidationError):
        return {}
    return {each.attempt: each.members for each in manifest.attempts}


def _with_chosen_sync(config: Config, tables: RunTables) -> Config:
    """Returns the config with what `sync.mode` auto has chosen last, if it is auto."""
    chosen = tables[SyncChosen]["settings"]
    if config.sync.mode != "auto" or not len(chosen):
        return config
    try:
        return config.model_copy(update={"sync": SyncSettings(**chosen[-1])})
    except ValidationError:
        return config


def _newest_forecast(tables: RunTables) -> ForecastMade | None:
    made = tables[ForecastMade]
    return events_at(ForecastMade, made, [len(made) - 1])[0] if len(made) else None


def with_prices(config: Config, newest: ForecastMade | None) -> Config:
    """Returns the config with the mean price of the hosts, where the host list had prices."""
    if newest is None or not newest.host_prices or not newest.hosts:
        return config
    mean = sum(newest.host_prices.values()) / len(newest.hosts)
    cost = config.cost.model_copy(update={"host_per_hour": mean})
    return config.model_copy(update={"cost": cost})


def _named(run: RunDir) -> RunDir:
    """Returns the directory under a name of its own, which `.`, `..` and links do not have: new
    runs are named after it, and so are its folders on other hosts."""
    has_name = run.root.name not in ("", "..") and not run.root.is_symlink()
    return run if has_name else RunDir(run.root.resolve())


def _start(attendance: list[_Attendance]) -> Start:
    if not attendance:
        return Start([], "", None)
    last = attendance[-1]
    return Start(last.command, last.launcher, last.options, last.folder)


def _tables(run: RunDir, progress: Callable[[int], None]) -> RunTables:
    try:
        return read_tables(run, progress)
    except OSError as error:
        raise UserError(
            f"{run.events}: cannot be read ({error.strerror or error}); "
            "ask for the right to read what is in it"
        ) from error


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
    """By name; empty for a folder that a running training removes at this moment."""
    try:
        return {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    except OSError:
        return {}


def _link_target(link: Path) -> str:
    return link.resolve().name if link.is_symlink() else ""
