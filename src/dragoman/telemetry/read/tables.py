"""Reads all events of a run into tables, fast: one a kind of event, of all ranks and attempts.

For looking at a run as a whole; `reader` gives the same events one by one, as what they were. A run
of 300,000 steps on 4 ranks takes seconds (docs/telemetry.md has the figures).
"""

import itertools
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.rundir import RunDir
from dragoman.telemetry.clocks import Comparisons, Timeline
from dragoman.telemetry.events import KINDS, ClockOffset
from dragoman.telemetry.read.columns import Array, joined
from dragoman.telemetry.read.events import event_files
from dragoman.telemetry.read.parsing import Parsed, parse

CHUNK_BYTES = 1 << 22
"""More does not stay in the caches of a processor while it is taken apart."""
_THREADS = 4


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
    parsed: Parsed


def read_tables(run: RunDir, advance: Callable[[int], None] = lambda _: None) -> RunTables:
    """Every known kind has its table, if only an empty one. `advance` is told of bytes read."""
    # The C library gives large blocks back at once, and the kernel clears them anew for each chunk:
    # a tenth of the time. Having freed one of nearly 32 MB, it keeps such (see mallopt(3)).
    bytes(31 << 20)
    threads = min(_THREADS, os.cpu_count() or 1)
    tables = {}
    with ThreadPoolExecutor(threads, thread_name_prefix="tables") as pool:
        pieces = list(_pieces(run, pool, 2 * threads, advance))
        for kind in KINDS.values():
            own = [piece for piece in pieces if kind in piece.parsed.found]
            rows = [piece.parsed.found[kind].rows for piece in own]
            whole = joined(kind, [piece.parsed.found.pop(kind) for piece in own], pool.map)
            attempts = np.array([piece.attempt for piece in own], dtype=np.int32)
            ranks = np.array([piece.rank for piece in own], dtype=np.int32)
            places = {"attempt": np.repeat(attempts, rows), "rank": np.repeat(ranks, rows)}
            tables[kind] = Table(places | whole.plain, whole.groups)
    _put_on_one_timeline(tables)
    return RunTables(tables, sum(piece.parsed.unread_lines for piece in pieces))


def _pieces(
    run: RunDir, pool: ThreadPoolExecutor, at_once: int, advance: Callable[[int], None]
) -> Iterator[_Piece]:
    """In order. So few are in work at once that memory does not depend on the size of the files."""
    in_work: deque[tuple[int, int, Future[Parsed]]] = deque()
    for attempt, rank, path in event_files(run):
        for text in _chunks(path):
            in_work.append((attempt, rank, pool.submit(parse, text)))
            advance(len(text))
            if len(in_work) > at_once:
                yield _first_of(in_work)
    while in_work:
        yield _first_of(in_work)


def _first_of(in_work: deque[tuple[int, int, Future[Parsed]]]) -> _Piece:
    attempt, rank, parsed = in_work.popleft()
    return _Piece(attempt, rank, parsed.result())


def _chunks(path: Path) -> Iterator[bytes]:
    """Whole lines, but for the last of a file that is torn or still being written."""
    with path.open("rb") as file:
        while text := file.read(CHUNK_BYTES):
            yield text if text.endswith(b"\n") else text + file.readline()


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
