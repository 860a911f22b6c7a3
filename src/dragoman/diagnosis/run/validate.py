"""Leaves out of a run's tables what cannot be: times before 1970, steps of minus one second.

A loss may be infinite, and that is news. A duration may not: it comes from a damaged file, and a
single one would spoil every mean. Where an event makes no sense without the figure, the whole event
is left out; a figure that an event may lack is taken as missing.
"""

from typing import Any, NamedTuple

import numpy as np

from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    DeviceFound,
    Evaluated,
    ForecastMade,
    Incident,
    SensorReading,
    StepDone,
)
from dragoman.telemetry.read.tables import Array, RunTables, Table


class Range(NamedTuple):
    least: float
    most: float


_MOMENT = Range(0.0, 1e11)
_SECONDS = Range(0.0, 1e9)
_OFFSET = Range(-1e11, 1e11)
_COUNT = Range(0, 1e15)
_STEP = Range(1, 1e15)
_BYTES = Range(0.0, 1e18)
_ANY = Range(-1e30, 1e30)
_SOME = Range(1e-30, 1e30)

_EACH = {"wall_at": _MOMENT, "monotonic_at": _MOMENT}
_NEEDED: dict[type[Any], dict[str, Range]] = {
    AttemptStarted: {"ranks": Range(1, 1e6), "first_step": _STEP},
    StepDone: {
        "step": _STEP,
        "epoch": _SECONDS,
        "tokens": _COUNT,
        "learning_rate": Range(0.0, 1e30),
        "step_s": _SECONDS,
    },
    Evaluated: {"step": _COUNT, "seconds": _SECONDS},
    CheckpointSaved: {"step": _COUNT, "seconds": _SECONDS, "bytes": _BYTES},
    Incident: {"step": _COUNT},
    AttemptEnded: {"step": _COUNT},
    ForecastMade: {
        "ranks": Range(1, 1e6),
        "step_s": _SECONDS,
        "step_low_s": _SECONDS,
        "step_high_s": _SECONDS,
        "compute_s": _SECONDS,
        "exposed_s": _SECONDS,
        "bytes_per_step": _BYTES,
    },
    ClockOffset: {"offset_s": _OFFSET, "monotonic_offset_s": _OFFSET, "error_s": _SECONDS},
}
_WANTED: dict[type[Any], dict[str, Range]] = {
    StepDone: {"memory_peak_bytes": _BYTES, "ready_s": _SECONDS},
    DeviceFound: {"peak_flops": _SOME, "memory_bytes": _SOME},
    ForecastMade: {"hours": _SECONDS, "cost": Range(0.0, 1e30)},
}
_GROUPS: dict[type[Any], dict[str, Range]] = {
    StepDone: {"parts_s": _SECONDS, "traffic_bytes": _BYTES, "counts": Range(0.0, 1e30)},
    SensorReading: {"values": _ANY},
    ForecastMade: {"sent_bytes_per_s": _SOME, "received_bytes_per_s": _SOME, "host_prices": _ANY},
}


def validated(tables: RunTables) -> tuple[RunTables, int]:
    """Returns the tables without what cannot be, and how many events were left out."""
    cleaned = {kind: _cleaned(kind, table) for kind, table in tables.by_kind.items()}
    left_out = sum(len(tables.by_kind[kind]) - len(table) for kind, table in cleaned.items())
    return RunTables(cleaned, tables.unread_lines), left_out


def _cleaned(kind: type[Any], table: Table) -> Table:
    is_whole = np.ones(len(table), dtype=bool)
    for name, within in (_EACH | _NEEDED.get(kind, {})).items():
        is_whole &= _is_within(table[name], within)
    if not is_whole.all():
        table = table.where(is_whole)
    columns = table.columns | {
        name: _known(table[name], within) for name, within in _WANTED.get(kind, {}).items()
    }
    groups = table.groups | {
        group: {name: _known(values, within) for name, values in table.groups[group].items()}
        for group, within in _GROUPS.get(kind, {}).items()
    }
    # Where a clock was compared with rubbish, an event lies where its own host says.
    is_placed = np.isfinite(columns["at"]) & (np.abs(columns["at"] - columns["wall_at"]) < 1e9)
    if not is_placed.all():
        columns["at"] = np.where(is_placed, columns["at"], columns["wall_at"])
    return Table(columns, groups)


def _is_within(values: Array, within: Range) -> Array:
    """Returns a mask in which NaN is False."""
    found: Array = (values >= within.least) & (values <= within.most)
    return found


def _known(values: Array, within: Range) -> Array:
    is_within = _is_within(values, within)
    return values if is_within.all() else np.where(is_within, values, np.nan)
