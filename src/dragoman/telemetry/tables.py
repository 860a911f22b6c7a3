"""Reads all events of a run into tables, fast: one a kind of event, of all ranks and attempts.

For looking at a run as a whole; `reader` gives the same events one by one, as what they were. A run
of 300,000 steps on 4 ranks takes seconds (docs/telemetry.md has the figures).
"""

import itertools
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.rundir import RunDir
from dragoman.telemetry.clocks import Comparisons, Timeline
from dragoman.telemetry.columns import Array, Columns, joined
from dragoman.telemetry.events import KINDS, ClockOffset, StepDone
from dragoman.telemetry.parsing import columns_of
from dragoman.telemetry.reader import event_files

CHUNK_BYTES = 1 << 24
_THREADS = 4
_HEAD_BYTES = 48
"""Where a line says its kind, first of all."""
_STEP = b'{"kind":"step",'
_NO_STEP = re.compile(rb"\n(?!" + re.escape(_STEP) + rb"|\Z)[^\n]*")


@dataclass(frozen=True)
class Table:
    """Equally long columns: attempt, rank, at, then the fields of an event and its two own times.

    `at` is where the event lies on the timeline of the attempt, on rank 0's clock. What is missing
    in a float column is NaN. Rows are in order of attempt and rank, and there as they were written.
    """

    columns: dict[str, Array]
    groups: dict[str, dict[str, Array]]
    """Of fields like parts_s: a column for each name, in the order in which the parts happened."""

    def __len__(self) -> int:
        return len(self.columns["rank"])

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def where(self, rows: Array) -> "Table":
        """The rows for which the mask holds, or of these numbers."""
        return Table(
            {name: values[rows] for name, values in self.columns.items()},
            {
                group: {name: values[rows] for name, values in numbers.items()}
                for group, numbers in self.groups.items()
            },
        )

    def by_rank(self) -> Iterator[tuple[int, int, "Table"]]:
        """(attempt, rank, its rows)."""
        for attempt, rank, begin, end in _stretches(self["attempt"], self["rank"]):
            yield attempt, rank, self.where(np.arange(begin, end))


@dataclass(frozen=True)
class RunTables:
    by_kind: dict[type[Any], Table]
    unread_lines: int
    """Torn by a crash, or of a kind that this version does not know."""

    def __getitem__(self, kind: type[Any]) -> Table:
        return self.by_kind[kind]


class _Piece(NamedTuple):
    attempt: int
    rank: int
    found: dict[type[Any], Columns]
    unread_lines: int


def read_tables(run: RunDir) -> RunTables:
    """Every known kind has its table, if only an empty one."""
    pieces = list(_pieces(run))
    unread_lines = sum(piece.unread_lines for piece in pieces)
    tables = {}
    for kind in KINDS.values():
        own = [piece for piece in pieces if kind in piece.found]
        rows = [piece.found[kind].rows for piece in own]
        whole = joined(kind, [piece.found.pop(kind) for piece in own])
        attempts = np.array([piece.attempt for piece in own], dtype=np.int32)
        ranks = np.array([piece.rank for piece in own], dtype=np.int32)
        places = {"attempt": np.repeat(attempts, rows), "rank": np.repeat(ranks, rows)}
        tables[kind] = Table(places | whole.plain, whole.groups)
    _put_on_one_timeline(tables)
    return RunTables(tables, unread_lines)


def _pieces(run: RunDir) -> Iterator[_Piece]:
    """In order. So few are in work at once that memory does not depend on the size of the files."""
    threads = min(_THREADS, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads, thread_name_prefix="tables") as pool:
        in_work: deque[Future[_Piece]] = deque()
        for attempt, rank, path in event_files(run):
            for text in _chunks(path):
                in_work.append(pool.submit(_parse, attempt, rank, text))
                if len(in_work) > 2 * threads:
                    yield in_work.popleft().result()
        while in_work:
            yield in_work.popleft().result()


def _chunks(path: Path) -> Iterator[bytes]:
    """Whole lines, but for the last of a file that is torn or still being written."""
    with path.open("rb") as file:
        while text := file.read(CHUNK_BYTES):
            yield text if text.endswith(b"\n") else text + file.readline()


def _parse(attempt: int, rank: int, text: bytes) -> _Piece:
    by_kind: dict[type[Any], list[bytes]] = defaultdict(list)
    found: dict[type[Any], Columns] = {}
    unread_lines = 0
    steps, others = _steps_and_others(text)
    if steps:
        by_kind[StepDone].append(steps)
    for line in others:
        # {"kind":"step", in older runs {"kind": "step"
        head = line[:_HEAD_BYTES].split(b'"', 4)
        name = head[3].decode(errors="replace") if len(head) == 5 and head[1] == b"kind" else ""
        if name in KINDS:
            by_kind[KINDS[name]].append(line + b"\n")
        else:
            unread_lines += 1
    for kind, lines in by_kind.items():
        own = lines[0] if len(lines) == 1 else b"".join(lines)
        found[kind] = columns_of(kind, own)
        unread_lines += found[kind].lines - found[kind].rows
    return _Piece(attempt, rank, found, unread_lines)


def _steps_and_others(text: bytes) -> tuple[bytes, list[bytes]]:
    """Lines that are steps, as they are; all others. Nearly all of a file are steps, in the form
    that we write, so the others are cut out without looking at each line in turn."""
    kept: list[bytes] = []
    others: list[bytes] = []
    begin = 0
    if not text.startswith(_STEP):
        begin = text.find(b"\n") + 1 or len(text)
        others.append(text[:begin].rstrip(b"\n"))
    for other in _NO_STEP.finditer(text, max(0, begin - 1)):
        kept.append(text[begin : other.start() + 1])
        others.append(text[other.start() + 1 : other.end()])
        begin = other.end() + 1
    kept.append(text[begin:] if begin else text)
    return kept[0] if len(kept) == 1 else b"".join(kept), [line for line in others if line]


def _put_on_one_timeline(tables: dict[type[Any], Table]) -> None:
    """Give each table its column `at`."""
    begins: dict[tuple[int, int], tuple[float, float]] = {}
    for table in tables.values():
        for attempt, rank, begin, _ in _stretches(table["attempt"], table["rank"]):
            first = float(table["monotonic_at"][begin]), float(table["wall_at"][begin])
            begins[attempt, rank] = min(first, begins.get((attempt, rank), first))
    timelines: dict[int, Timeline] = defaultdict(lambda: Timeline({}, {}))
    for (attempt, rank), (monotonic_at, wall_at) in begins.items():
        timelines[attempt].wall_ahead_s[rank] = wall_at - monotonic_at
    for attempt, rank, compared in tables[ClockOffset].by_rank():
        offset_s, error_s = compared["monotonic_offset_s"], compared["error_s"]
        is_known = np.isfinite(offset_s) & np.isfinite(error_s)
        if is_known.any():
            timelines[attempt].comparisons[rank] = Comparisons(
                compared["monotonic_at"][is_known], offset_s[is_known], error_s[is_known]
            )
    for table in tables.values():
        table.columns["at"] = np.empty(len(table))
        for attempt, rank, begin, end in _stretches(table["attempt"], table["rank"]):
            placed = timelines[attempt].place(rank, table["monotonic_at"][begin:end])
            table.columns["at"][begin:end] = placed


def _stretches(attempts: Array, ranks: Array) -> Iterator[tuple[int, int, int, int]]:
    """(attempt, rank, begin, end) of rows that belong to one file."""
    if not len(ranks):
        return
    changes = np.flatnonzero((np.diff(attempts) != 0) | (np.diff(ranks) != 0)) + 1
    bounds = [0, *changes.tolist(), len(ranks)]
    for begin, end in itertools.pairwise(bounds):
        yield int(attempts[begin]), int(ranks[begin]), begin, end
