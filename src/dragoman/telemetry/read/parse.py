"""A text of whole lines comes in, tables of every kind of event in it go out.

Lines of numbers that are alike are read at once, see `patterns`. All others, which are few, are
read one by one by `from_line`: events with texts, lines that a crash has torn, fields of another
type. Both ways give the same, but for digits that JSON refuses: 007 is a number to the first.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dragoman.telemetry.events import KINDS, Stamped, from_line, kind_of
from dragoman.telemetry.read.patterns import Lines, NumberIndex, pattern_of, read_alike
from dragoman.telemetry.read.tables import (
    TIMES,
    Array,
    Field,
    Table,
    TableBuilder,
    fields_of,
    merge_orders,
)

MOST_PATTERNS = 16
"""In one text. A run has three or four; where no two lines are alike, patterns only cost time."""
LINE = "line"
"""The column that says in which line of the text a row stood."""
_FIELDS = {kind: fields_of(kind) for kind in KINDS.values()}
_NUMERIC = {
    kind for kind in _FIELDS if all(f.is_group or f.type != "O" for f in _FIELDS[kind])
}  # nothing but numbers, and groups of numbers


class Parsed(NamedTuple):
    tables: dict[type[Any], Table]
    """Rows are in the order of their lines."""
    unread_lines: int
    """Torn, of no known kind, or of other types."""


def parse(text: bytes) -> Parsed:
    lines = Lines.of(text)
    is_left = lines.ends - lines.begins > 1
    left = np.flatnonzero(is_left)
    line_count = len(left)
    parts: dict[type[Any], list[Table]] = defaultdict(list)
    alone: list[int] = []
    patterns = 0
    while len(left):
        line = lines[left[0]]
        kind = kind_of(line)
        if kind in _NUMERIC and patterns < MOST_PATTERNS:
            patterns += 1
            if alike := _read_alike(kind, line, lines, left):
                parts[kind].append(alike)
                is_left[alike[LINE]] = False
                left = left[is_left[left]]
                continue
        alone.append(int(left[0]))
        left = left[1:]
    for kind, table in read_one_by_one(alone, [lines[number] for number in alone]).items():
        parts[kind].append(table)
    tables = {kind: _in_order(kind, own) for kind, own in parts.items()}
    return Parsed(tables, line_count - sum(map(len, tables.values())))


def _in_order(kind: type[Any], parts: Sequence[Table]) -> Table:
    lines = np.concatenate([part.columns.pop(LINE) for part in parts])
    if len(parts) == 1:
        return parts[0]
    whole = TableBuilder(kind)
    for part in parts:
        whole.add(part)
    return whole.table().where(np.argsort(lines))


def _read_alike(kind: type[Any], line: bytes, lines: Lines, among: Array) -> Table | None:
    """Returns all lines that are like this one. None: this one or another must be read alone."""
    pattern, stamped = pattern_of(line), from_line(line)
    if pattern is None or stamped is None or type(stamped.event) is not kind:
        return None
    content = pattern.content
    numbers = {field for field in _FIELDS[kind] if isinstance(content.get(field.name), NumberIndex)}
    integers = {content[field.name] for field in numbers if field.type == "i8"}
    alike = read_alike(pattern, integers, lines, among)
    if alike is None:
        return None
    table = Table({LINE: alike.lines}, {})
    for field in _FIELDS[kind]:
        if field.is_group:
            places = content.get(field.name, {}).items()
            own = {name: alike.numbers[place] for name, place in places if place is not None}
            table.groups[field.name] = _without_empty(own)
        elif field in numbers:
            table.columns[field.name] = alike.numbers[content[field.name]]
        else:  # these lines all have the same, or the default
            same = np.full(len(table), _value(stamped, field), field.type)
            table.columns[field.name] = same
    return table


def _value(stamped: Stamped, field: Field) -> Any:
    return getattr(stamped if field.name in TIMES else stamped.event, field.name)


def read_one_by_one(numbers: Sequence[int], lines: Sequence[bytes]) -> dict[type[Any], Table]:
    """Returns the events among these lines of a text, which have these numbers in it."""
    by_kind: dict[type[Any], list[tuple[int, Stamped]]] = defaultdict(list)
    for number, line in zip(numbers, lines, strict=True):
        if stamped := from_line(line):
            by_kind[type(stamped.event)].append((number, stamped))
    return {kind: _table_of(kind, found) for kind, found in by_kind.items()}


def _table_of(kind: type[Any], found: Sequence[tuple[int, Stamped]]) -> Table:
    table = Table({LINE: np.array([number for number, _ in found])}, {})
    for field in _FIELDS[kind]:
        values = [_value(stamped, field) for _, stamped in found]
        if field.is_group:
            order = merge_orders(dict.fromkeys(tuple(group) for group in values))
            own = {name: np.array([g.get(name, math.nan) for g in values]) for name in order}
            table.groups[field.name] = _without_empty(own)
        else:
            column = np.empty(len(values), field.type)
            column[:] = values  # to NumPy, None among floats is NaN
            table.columns[field.name] = column
    return table


def _without_empty(group: dict[str, Array]) -> dict[str, Array]:
    """Returns the columns of a group in which any row has a number."""
    return {name: values for name, values in group.items() if not np.isnan(values).all()}
