"""Reads the events of a run back, of any number of ranks and attempts, whole or torn.

One by one, as objects; `reader` reads a long run as a whole, into tables.
"""

import re
from collections.abc import Collection, Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.rundir import RunDir
from dragoman.telemetry.events import KINDS, Stamped, from_line, kind_of

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


def attempts_so_far(run: RunDir) -> int:
    return max((attempt for attempt, _, _ in event_files(run)), default=0)


def _stamped(path: Path, kinds: Set[type[Any]]) -> Iterator[Stamped]:
    with path.open("rb") as file:
        for line in file:
            if kind_of(line) in kinds and (stamped := from_line(line)):
                yield stamped
