"""Reads the events of a run back, of any number of ranks and attempts, whole or torn."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman.rundir import RunDir
from dragoman.telemetry.events import Stamped, from_line

_NAME = re.compile(r"attempt-(\d+)-rank-(\d+)\.jsonl")


class Recorded(NamedTuple):
    attempt: int
    rank: int
    stamped: Stamped


def read_events(run: RunDir, rank: int | None = None) -> list[Recorded]:
    """All events in order of attempt, rank and time; of one rank when it is named."""
    recorded: list[Recorded] = []
    for path in sorted(run.events.glob("*.jsonl")):
        if not (name := _NAME.fullmatch(path.name)):
            continue
        attempt, writer = int(name[1]), int(name[2])
        if rank is None or rank == writer:
            recorded.extend(Recorded(attempt, writer, stamped) for stamped in _stamped(path))
    return recorded


def attempts_so_far(run: RunDir) -> int:
    numbers = [
        int(m[1]) for path in run.events.glob("*.jsonl") if (m := _NAME.fullmatch(path.name))
    ]
    return max(numbers, default=0)


def _stamped(path: Path) -> Iterator[Stamped]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if stamped := from_line(line):
                yield stamped
