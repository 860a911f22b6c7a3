"""A piece of work whose result is one numbered result of a stage, wherever it is done.

What a task reads are its inputs: files, parts of files, or bytes that travel with it. What it
returns are the contents of files. So it is done in this process, in another one or on another
machine alike, and gives the same bytes.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dragoman.errors import CorruptFileError, UserError
from dragoman.preparation.stage import Stage
from dragoman.rundir import write_whole


class Input(Protocol):
    def read(self) -> bytes: ...


class Given(NamedTuple):
    """Bytes that are part of the task."""

    content: bytes

    def read(self) -> bytes:
        return self.content


def changed(path: Path) -> UserError:
    return UserError(f"{path}: changed while it was read; run again once it is complete")


class FileRange(NamedTuple):
    """Bytes of a file of the user, to its end if `end` is None."""

    path: Path
    begin: int = 0
    end: int | None = None
    status: tuple[int, int] | None = None
    """Size and time of change in nanoseconds: if another one, it is not what was hashed."""

    def read(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(self.begin)
                content = file.read(-1 if self.end is None else self.end - self.begin)
                found = os.fstat(file.fileno())  # after it was read
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be read ({error.strerror}); get it again"
            ) from None
        is_short = self.end is not None and len(content) < self.end - self.begin
        if is_short or self.status not in (None, (found.st_size, found.st_mtime_ns)):
            raise changed(self.path)
        return content


class StageFile(NamedTuple):
    """A file of a stage, which is compared with its hash."""

    stage: Stage
    number: int
    suffix: str

    def read(self) -> bytes:
        return self.stage.content(self.number, self.suffix)


class StageRange(NamedTuple):
    """A part of a file of a stage. Only its size is checked: a hash would need all of the file."""

    stage: Stage
    number: int
    suffix: str
    begin: int
    end: int

    def read(self) -> bytes:
        path = self.stage.file(self.number, self.suffix)
        try:
            with path.open("rb") as file:
                file.seek(self.begin)
                content = file.read(self.end - self.begin)
        except OSError:
            content = b""
        if len(content) < self.end - self.begin:
            raise CorruptFileError(
                f"{path}: is shorter than its record says; remove the folder {self.stage.folder} "
                "and prepare again"
            )
        return content


class Joined(NamedTuple):
    """Several inputs, one after the other."""

    parts: Sequence[Input]

    def read(self) -> bytes:
        return b"".join(part.read() for part in self.parts)


Inputs = Mapping[str, Input]


@dataclass
class Result:
    record: dict[str, Any]
    contents: Mapping[str, str | bytes] = field(default_factory=dict)
    """By suffix: files of the stage."""
    files: dict[str, bytes] = field(default_factory=dict)
    """By name: other files in the folder of the stage."""
    pairs: int = 0
    """How many were read, for the progress."""


@dataclass(frozen=True)
class Task:
    function: Callable[[Any, Any], Result]
    """Is given the settings and the inputs."""
    settings: Any
    inputs: Inputs
    stage: Stage
    number: int

    def do(self) -> Result:
        return self.function(self.settings, self.inputs)

    def keep(self, result: Result) -> None:
        """Writes what was done; the record comes last, and marks the result as finished."""
        self.stage.finish_written(self.number, result.record, self.write(result))

    def write(self, result: Result) -> dict[str, str]:
        """Writes all but the record; returns the hashes that belong into it."""
        for name, content in result.files.items():
            write_whole(self.stage.folder / name, content)
        return self.stage.write(self.number, result.contents)

    def with_bytes(self) -> "Task":
        """Returns a task that can be done where none of the files are."""
        given = {name: Given(value.read()) for name, value in self.inputs.items()}
        return replace(self, inputs=given)


class Logged(NamedTuple):
    name: str
    level: int
    text: str

    def log(self) -> None:
        logging.getLogger(self.name).log(self.level, self.text)


class Done(NamedTuple):
    """What comes back from where a task was done."""

    logged: list[Logged]
    result: Result
    hashes: dict[str, str] | None
    """Of the files, if they were written there; None: they are in the result."""


def do_there(task: Task, is_written: bool) -> Done:
    """Does a task in another process, which also writes the files of the result if told so.

    The record is for the caller to write: whoever lists what is finished has then changed the
    folder itself, and sees it on a network file system, too.
    """
    with _collected_log() as logged:
        result = task.do()
        if not is_written:
            return Done(logged, result, None)
        hashes = task.write(result)
    return Done(logged, replace(result, contents={}, files={}), hashes)


def finish(task: Task, done: Done) -> int:
    """Writes what is missing of a result, and logs what was logged; returns its pairs."""
    for logged in done.logged:
        logged.log()
    if done.hashes is None:
        task.keep(done.result)
    else:
        task.stage.finish_written(task.number, done.result.record, done.hashes)
    return done.result.pairs


@contextmanager
def _collected_log() -> Iterator[list[Logged]]:
    collecting = _Collecting()
    logger = logging.getLogger("dragoman")
    logger.addHandler(collecting)
    try:
        yield collecting.logged
    finally:
        logger.removeHandler(collecting)


class _Collecting(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.logged: list[Logged] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:  # others may do tasks beside it
            self.logged.append(Logged(record.name, record.levelno, record.getMessage()))
