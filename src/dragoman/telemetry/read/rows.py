"""Rows of a run's tables: where those of one file stand, and what they were before.

A run has millions of steps and few of all else. Steps stay columns; events of the other kinds
become objects again.
"""

import dataclasses
import itertools
import math
import typing
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.tables import RunTables, Table

Kind = TypeVar("Kind")
File: TypeAlias = tuple[int, int]
"""Attempt and rank."""


def files_of(table: Table) -> dict[File, slice]:
    """Where the rows of each file stand: a table has them one file after the other."""
    attempts, ranks = table["attempt"], table["rank"]
    if not len(table):
        return {}
    changes = np.flatnonzero((np.diff(attempts) != 0) | (np.diff(ranks) != 0)) + 1
    bounds = [0, *changes.tolist(), len(table)]
    return {
        (int(attempts[begin]), int(ranks[begin])): slice(begin, end)
        for begin, end in itertools.pairwise(bounds)
    }


def taken(table: Table, rows: Array) -> Table:
    """The rows of these numbers; without a copy where they stand together, as most of them do."""
    begin = int(rows[0]) if len(rows) else 0
    if np.array_equal(rows, np.arange(begin, begin + len(rows))):
        return table.where(slice(begin, begin + len(rows)))  # type: ignore[arg-type]
    return table.where(rows)


def group_column(table: Table, group: str, name: str) -> Array:
    """Of a group such as parts_s; NaN everywhere where no row has it."""
    found = table.groups.get(group, {}).get(name)
    return np.full(len(table), math.nan) if found is None else found


def events_of(kind: type[Kind], table: Table, rows: Iterable[int]) -> list[Kind]:
    """Rows as the events that they were written as."""
    types = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    groups = {name: table.groups[name] for name in names if name in table.groups}
    return [
        kind(
            **{
                name: _group(groups[name], row)
                if name in groups
                else _as(types[name], table[name][row])
                for name in names
            }
        )
        for row in rows
    ]


def events_of_attempt(kind: type[Kind], tables: RunTables, attempt: int) -> list[Kind]:
    """Of all ranks, in order of rank and time."""
    table = tables[kind]
    return events_of(kind, table, np.flatnonzero(table["attempt"] == attempt))


def events_by_rank(kind: type[Kind], tables: RunTables, attempt: int) -> dict[int, Kind]:
    """The last of each rank."""
    table = tables[kind]
    rows = np.flatnonzero(table["attempt"] == attempt)
    ranks = (int(rank) for rank in table["rank"][rows])
    return dict(zip(ranks, events_of(kind, table, rows), strict=True))


def rows_of_lowest(table: Table, attempt: int) -> Array:
    """Of the lowest rank that has any in this attempt: the others tell of the same."""
    rows = np.flatnonzero(table["attempt"] == attempt)
    return rows[table["rank"][rows] == table["rank"][rows].min()] if len(rows) else rows


def _group(columns: dict[str, Array], row: int) -> dict[str, float]:
    found = ((name, float(values[row])) for name, values in columns.items())
    return {name: value for name, value in found if not math.isnan(value)}


def _as(wanted: Any, value: Any) -> Any:
    """What a damaged or newer file has of another type must not break whoever reads it."""
    if wanted is str:
        return "" if value != value else str(value)  # NaN differs from itself
    if wanted is int or wanted is bool or wanted is float:
        return wanted(value)
    if wanted == float | None:
        return None if math.isnan(value) else float(value)
    if wanted == int | None:
        return value if type(value) is int else None
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is list:
        items = value if isinstance(value, list) else ()
        return [_as(inner[0], item) for item in items if _is_like(inner[0], item)]
    if origin is dict:
        pairs = value.items() if isinstance(value, dict) else ()
        return {str(name): _as(inner[1], item) for name, item in pairs}
    return value


def _is_like(wanted: Any, value: object) -> bool:
    return isinstance(value, typing.get_origin(wanted) or wanted)
