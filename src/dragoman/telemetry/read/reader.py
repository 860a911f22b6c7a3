"""Reads all events of a run into tables, fast: one a kind of event, of all ranks and attempts.

For looking at a run as a whole; `read.events` gives the same events one by one, as objects. A run
of 300,000 steps on 4 ranks takes seconds (docs/telemetry.md has the figures).
"""

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.rundir import RunDir
from dragoman.telemetry.clocks import Comparisons, Timeline
from dragoman.telemetry.events import FORMAT, KINDS, AttemptStarted, ClockOffset
from dragoman.telemetry.read.events import event_files, refuse_newer_format
from dragoman.telemetry.read.parse import Parsed, parse
from dragoman.telemetry.read.tables import FileKey, RunTables, Table, TableBuilder, slices_by_file

CHUNK_BYTES = 1 << 22
"""More does not stay in the caches of a processor while it is taken apart."""
_THREADS = 4


def read_tables(run: RunDir, advance: Callable[[int], None] = lambda _: None) -> RunTables:
    """Returns a table for every known kind. `advance` is called with the bytes of each chunk.

    A run of a newer format than ours is refused: its events may mean something else.
    """
    # The C library gives large blocks back at once, and the kernel clears them anew for each chunk:
    # a tenth of the time. Having freed one of nearly 32 MB, it keeps such (see mallopt(3)).
    bytes(31 << 20)
    threads = min(_THREADS, os.cpu_count() or 1)
    builders = {kind: TableBuilder(kind) for kind in KINDS.values()}
    row_counts: dict[type[Any], list[tuple[int, int, int]]] = defaultdict(list)
    unread_lines = 0
    with ThreadPoolExecutor(threads, thread_name_prefix="tables") as pool:
        for attempt, rank, parsed in _parsed_chunks(run, pool, 2 * threads, advance):
            tables_of_chunk, unread_of_chunk = parsed.result()
            unread_lines += unread_of_chunk
            for kind, table in tables_of_chunk.items():
                builders[kind].add(table)
                row_counts[kind].append((attempt, rank, len(table)))
    tables = {kind: _placed(builders[kind].table(), row_counts[kind]) for kind in builders}
    refuse_newer_format(run, max(tables[AttemptStarted]["format"], default=FORMAT))
    _put_on_one_timeline(tables)
    return RunTables(tables, unread_lines)


def _placed(table: Table, row_counts: Sequence[tuple[int, int, int]]) -> Table:
    """Returns the table with columns for attempt and rank, of which so many rows come in turn."""
    attempts, ranks, counts = np.array(row_counts, np.int32).reshape(-1, 3).T
    places = {"attempt": np.repeat(attempts, counts), "rank": np.repeat(ranks, counts)}
    return Table(places | table.columns, table.groups)


def _parsed_chunks(
    run: RunDir, pool: ThreadPoolExecutor, at_once: int, advance: Callable[[int], None]
) -> Iterator[tuple[int, int, Future[Parsed]]]:
    """Yields (attempt, rank, its next rows), in order. So few are in work at once that memory does
    not depend on the size of the files."""
    in_work: deque[tuple[int, int, Future[Parsed]]] = deque()
    for attempt, rank, path in event_files(run):
        for text in _chunks(path):
            in_work.append((attempt, rank, pool.submit(parse, text)))
            advance(len(text))
            if len(in_work) > at_once:
                yield in_work.popleft()
    while in_work:
        yield in_work.popleft()


def _chunks(path: Path) -> Iterator[bytes]:
    """Yields whole lines, but for the last of a file that is torn or still being written."""
    with path.open("rb") as file:
        while text := file.read(CHUNK_BYTES):
            yield text if text.endswith(b"\n") else text + file.readline()


@np.errstate(all="ignore")  # damaged lines hold any number; who reads the tables leaves those out
def _put_on_one_timeline(tables: dict[type[Any], Table]) -> None:
    """Gives each table its column `at`."""
    begins: dict[FileKey, tuple[float, float]] = {}
    for table in tables.values():
        for file, rows in slices_by_file(table).items():
            first = float(table["monotonic_at"][rows.start]), float(table["wall_at"][rows.start])
            begins[file] = min(first, begins.get(file, first))
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
        for (attempt, rank), rows in slices_by_file(table).items():
            placed = timelines[attempt].place(rank, table["monotonic_at"][rows])
            table.columns["at"][rows] = placed
