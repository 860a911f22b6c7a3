"""The few events of a long run that its faults follow from.

`faults` walks through events one by one. Of the steps it needs those at which a run can have gone
back; whatever lies between two of them is handed on as one step that took as long.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dragoman.diagnosis.run.faults import FaultHistory, faults_of
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.timeline import RunTimeline
from dragoman.telemetry.events import (
    KINDS,
    AttemptStarted,
    CheckpointSaved,
    SensorReading,
    Stamped,
    StepDone,
)
from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.events import Recorded
from dragoman.telemetry.read.rows import File, events_of, files_of
from dragoman.telemetry.read.tables import RunTables, Table


def faults_in(record: RunRecord, timeline: RunTimeline) -> FaultHistory:
    is_running = bool(timeline.attempts) and timeline.attempts[-1].state == "training"
    return faults_of(fault_events(record.tables), is_running)


def fault_events(tables: RunTables) -> list[Recorded]:
    """In order of attempt, rank and time."""
    done = tables[StepDone]
    leading = _leading_ranks(tables)
    returns = _steps_to_return_to(tables, leading)
    by_file: dict[File, list[Stamped]] = {}
    for (attempt, rank), rows in files_of(done).items():
        own = by_file.setdefault((attempt, rank), [])
        if rank == leading[attempt]:
            own += _stretches(done, rows, returns)
        else:
            own += _stamped(StepDone, done, [rows.stop - 1])
    for kind in KINDS.values():
        for file, rows in files_of(tables[kind]).items():
            if kind is SensorReading:  # only as a last sign of life
                by_file.setdefault(file, []).extend(_stamped(kind, tables[kind], [rows.stop - 1]))
            elif kind is not StepDone:
                numbers = range(rows.start, rows.stop)
                by_file.setdefault(file, []).extend(_stamped(kind, tables[kind], numbers))
    return [
        Recorded(attempt, rank, stamped)
        for (attempt, rank), events in sorted(by_file.items())
        for stamped in sorted(events, key=lambda stamped: stamped.monotonic_at)
    ]


def _leading_ranks(tables: RunTables) -> dict[int, int]:
    """Attempt -> the lowest rank that has left any event."""
    files = sorted({file for table in tables.by_kind.values() for file in files_of(table)})
    return dict(reversed(files))


def _steps_to_return_to(tables: RunTables, leading: dict[int, int]) -> Array:
    """Where attempts began, saved, or went back to: the last step before each."""
    done = tables[StepDone]
    found = [tables[CheckpointSaved]["step"], tables[AttemptStarted]["first_step"] - 1]
    for (attempt, rank), rows in files_of(done).items():
        if rank == leading[attempt]:
            steps = done["step"][rows]
            found += [steps[:1] - 1, steps[1:][np.diff(steps) <= 0] - 1]
    return np.unique(np.concatenate(found))


def _stretches(done: Table, rows: slice, returns: Array) -> Iterator[Stamped]:
    """Steps of one file, those in a row as one, cut behind each that a run may return to."""
    steps = done["step"][rows]
    goes_back = np.diff(steps) <= 0
    is_end = np.ones(len(steps), dtype=bool)
    is_end[:-1] = goes_back | (np.diff(np.searchsorted(returns, steps)) > 0)
    is_end[1:] |= goes_back  # alone, so that its number shows it
    ends = np.flatnonzero(is_end)
    begins = np.append(0, ends[:-1] + 1)
    at, step_s = done["monotonic_at"][rows], done["step_s"][rows]
    seconds = at[ends] - (at[begins] - step_s[begins])
    stamped = _stamped(StepDone, done, rows.start + ends)
    for one, took_s in zip(stamped, seconds, strict=True):
        assert isinstance(one.event, StepDone)
        yield one._replace(event=dataclasses.replace(one.event, step_s=float(took_s)))


def _stamped(kind: type[Any], table: Table, rows: Iterable[int]) -> list[Stamped]:
    numbers = [int(row) for row in rows]
    return [
        Stamped(float(table["wall_at"][row]), float(table["monotonic_at"][row]), event)
        for row, event in zip(numbers, events_of(kind, table, numbers), strict=True)
    ]
