"""Reads the events of a run back, of any number of ranks and attempts, whole or torn.

One by one, as objects; `reader` reads a long run as a whole, into tables.
"""

import re
from collections.abc import Collection, Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import UserError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    FORMAT,
    KINDS,
    AttemptStarted,
    Stamped,
    from_line,
    kind_of,
)

_NAME = re.compile(r"attempt-(\d+)-rank-(\d+)\.jsonl")


class Recorded(NamedTuple):
    attempt: int
    rank: int
    stamped: Stamped


def event_files(run: RunDir) -> list[tuple[int, int, Path]]:
    """Returns (attempt, rank, file), in this order."""
    named = ((_NAME.fullmatch(path.name), path) for path in run.events.glob("*.jsonl"))
    return sorted((int(name[1]), int(name[2]), path) for name, path in named if name)


def read_events(
    run: RunDir, rank: int | None = None, kinds: Collection[type[Any]] = KINDS.values()
) -> list[Recorded]:
    """Returns all events in order of attempt, rank and time; of one rank and of some kinds when
    named. Lines of other kinds cost next to nothing."""
    return [
        Recorded(attempt, writer, stamped)
        for attempt, writer, path in event_files(run)
        if rank is None or rank == writer
        for stamped in _stamped(path, set(kinds))
    ]


def newest_format(run: RunDir) -> int:
    """Returns the newest format of a run's files, each of which begins with its own."""
    formats = [1]
    for _, _, path in event_files(run):
        with path.open("rb") as file:
            first = from_line(file.readline())
        if first and isinstance(first.event, AttemptStarted):
            formats.append(first.event.format)
    return max(formats)


def refuse_newer_format(run: RunDir, newest: int) -> None:
    """Refuses a run of a newer format than ours: its events may mean something else."""
    if newest > FORMAT:
        raise UserError(
            f"{run.root} was recorded by a newer version (event format {newest}; this version "
            f"reads up to {FORMAT}); update Dragoman to read it"
        )


def attempts_so_far(run: RunDir) -> int:
    return max((attempt for attempt, _, _ in event_files(run)), default=0)


def _stamped(path: Path, kinds: Set[type[Any]]) -> Iterator[Stamped]:
    with path.open("rb") as file:
        for line in file:
            if kind_of(line) in kinds and (stamped := from_line(line)):
                yield stamped
