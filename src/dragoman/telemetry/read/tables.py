"""Events as columns: one table a kind of event, of all ranks and attempts.

A run has millions of steps and few of all else. Steps stay columns; events of the other kinds can
be had as objects again.
"""

import dataclasses
import itertools
import math
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Kind = TypeVar("Kind")
FileKey: TypeAlias = tuple[int, int]
"""Attempt and rank."""

TIMES = ("wall_at", "monotonic_at")
_GROUP = dict[str, float]
_TYPES: dict[Any, str] = {float: "f8", float | None: "f8", int: "i8", bool: "?"}


class Field(NamedTuple):
    name: str
    type: str
    """NumPy's name of it: O for texts and all else that is not a number."""
    is_group: bool


def known(values: Iterable[float]) -> list[float]:
    """Returns the values that were recorded: NaN stands for those that were not."""
    return [value for value in values if not math.isnan(value)]


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
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def where(self, rows: Array | slice) -> "Table":
        """Returns the rows for which a mask holds, or those of these numbers. Rows that stand
        together are not copied."""
        if not isinstance(rows, slice):
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows
            begin = int(rows[0]) if len(rows) else 0
            if np.array_equal(rows, np.arange(begin, begin + len(rows))):
                rows = slice(begin, begin + len(rows))
        return Table(
            {name: values[rows] for name, values in self.columns.items()},
            {
                group: {name: values[rows] for name, values in numbers.items()}
                for group, numbers in self.groups.items()
            },
        )

    def by_rank(self) -> Iterator[tuple[int, int, "Table"]]:
        """Yields (attempt, rank, its rows)."""
        for (attempt, rank), rows in slices_by_file(self).items():
            yield attempt, rank, self.where(rows)


@dataclass(frozen=True)
class RunTables:
    by_kind: dict[type[Any], Table]
    """Every known kind has its table, if only an empty one."""
    unread_lines: int
    """Torn by a crash, of a kind that this version does not know, or of other types."""

    def __getitem__(self, kind: type[Any]) -> Table:
        return self.by_kind[kind]


def fields_of(kind: type[Any]) -> tuple[Field, ...]:
    """Returns the two times that every event carries, then the event's own fields."""
    own = ((field.name, field.type) for field in dataclasses.fields(kind))
    return tuple(
        Field(name, _TYPES.get(type_, "O"), type_ == _GROUP)
        for name, type_ in (*((time, float) for time in TIMES), *own)
    )


class TableBuilder:
    """Joins tables of one kind as they come. Nothing is held twice but the one column that is being
    enlarged: a list of parts, joined in the end, would need memory for all rows twice."""

    def __init__(self, kind: type[Any]) -> None:
        fields = fields_of(kind)
        self._row_count = 0
        self._table = Table(
            {f.name: np.empty(0, f.type) for f in fields if not f.is_group},
            {f.name: {} for f in fields if f.is_group},
        )

    def add(self, table: Table) -> None:
        begin, end = self._row_count, self._row_count + len(table)
        columns, groups = self._table.columns, self._table.groups
        for name, values in columns.items():
            columns[name] = _extended(values, begin, end, table[name])
        for group, known in groups.items():
            own = table.groups[group]
            groups[group] = {
                name: _extended(
                    known[name] if name in known else np.full(begin, math.nan),
                    begin,
                    end,
                    own.get(name, math.nan),
                )
                for name in merge_orders([known, own])
            }
        self._row_count = end

    def table(self) -> Table:
        return self._table.where(slice(self._row_count))


def _extended(column: Array, begin: int, end: int, values: Array | float) -> Array:
    """Returns the column with these values at [begin, end), in place where it has room."""
    if end > len(column):
        enlarged = np.empty(2 * end, column.dtype)
        enlarged[:begin] = column[:begin]
        column = enlarged
    column[begin:end] = values
    return column


def merge_orders(orders: Iterable[Iterable[str]]) -> list[str]:
    """Returns all names, each behind the one that it was first seen behind."""
    merged: list[str] = []
    for order in orders:
        place = 0
        for name in order:
            if name in merged:
                place = merged.index(name) + 1
            else:
                merged.insert(place, name)
                place += 1
    return merged


def slices_by_file(table: Table) -> dict[FileKey, slice]:
    """Returns where the rows of each file stand: a table has them one file after the other."""
    attempts, ranks = table["attempt"], table["rank"]
    if not len(table):
        return {}
    changes = np.flatnonzero((np.diff(attempts) != 0) | (np.diff(ranks) != 0)) + 1
    bounds = [0, *changes.tolist(), len(table)]
    return {
        (int(attempts[begin]), int(ranks[begin])): slice(begin, end)
        for begin, end in itertools.pairwise(bounds)
    }


def group_column(table: Table, group: str, name: str) -> Array:
    """Returns one column of a group such as parts_s; NaN everywhere where no row has it."""
    found = table.groups.get(group, {}).get(name)
    return np.full(len(table), math.nan) if found is None else found


def known_mean(values: Array) -> float:
    """Returns the mean of a column without what is missing; NaN: all is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def known_median(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def rows_of_lowest_rank(table: Table, attempt: int) -> Array:
    """Returns the rows of the lowest rank that has any in this attempt, for kinds of events that
    several ranks write alike."""
    rows = np.flatnonzero(table["attempt"] == attempt)
    return rows[table["rank"][rows] == table["rank"][rows].min()] if len(rows) else rows


def events_at(kind: type[Kind], table: Table, rows: Iterable[int]) -> list[Kind]:
    """Returns rows as the events that they were written as."""
    types = typing.get_type_hints(kind)
    return [
        kind(
            **{
                name: _group_at(table.groups[name], row)
                if name in table.groups
                else _value_at(table[name], row, wanted)
                for name, wanted in types.items()
            }
        )
        for row in rows
    ]


def events_of_attempt(kind: type[Kind], tables: RunTables, attempt: int) -> list[Kind]:
    """Returns the events of all ranks, in order of rank and time."""
    table = tables[kind]
    return events_at(kind, table, np.flatnonzero(table["attempt"] == attempt))


def last_event_by_rank(kind: type[Kind], tables: RunTables, attempt: int) -> dict[int, Kind]:
    table = tables[kind]
    rows = np.flatnonzero(table["attempt"] == attempt)
    ranks = (int(rank) for rank in table["rank"][rows])
    return dict(zip(ranks, events_at(kind, table, rows), strict=True))


def _group_at(columns: dict[str, Array], row: int) -> dict[str, float]:
    found = ((name, float(values[row])) for name, values in columns.items())
    return {name: value for name, value in found if not math.isnan(value)}


def _value_at(column: Array, row: int, wanted: Any) -> Any:
    value = column[row]
    if wanted == float | None and math.isnan(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
