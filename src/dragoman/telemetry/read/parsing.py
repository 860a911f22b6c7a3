"""A text of whole lines comes in, columns of every kind of event in it go out.

Lines of numbers that are alike are read at once, see `patterns`. All others, which are few, are
read one by one: events with texts, lines that a crash has torn, fields of another type. Both ways
give the same, but for digits that JSON refuses: 007 is a number to the first.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from dragoman.telemetry.events import KINDS, from_line
from dragoman.telemetry.format_1 import UPGRADED
from dragoman.telemetry.read.columns import (
    OBJECT,
    Array,
    Columns,
    Field,
    fields_of,
    is_numeric,
    joined,
    merge_order,
    taken,
)
from dragoman.telemetry.read.patterns import Lines, Place, pattern_of, read_alike

MOST_PATTERNS = 16
"""In one text. A run has three or four; where no two lines are alike, patterns only cost time."""
_NUMERIC = {kind for kind in KINDS.values() if is_numeric(kind)}
_HEAD_BYTES = 48
"""Where a line says its kind, first of all."""


class Parsed(NamedTuple):
    found: dict[type[Any], Columns]
    """Rows are in the order of their lines."""
    unread_lines: int
    """Torn, or of no known kind."""


def parse(text: bytes) -> Parsed:
    lines = Lines.of(text)
    is_left = lines.ends - lines.begins > 1
    left = np.flatnonzero(is_left)
    unread_lines = len(left)
    parts: dict[type[Any], list[Columns]] = defaultdict(list)
    others: dict[type[Any], list[int]] = defaultdict(list)
    patterns = 0
    while len(left):
        line = lines[left[0]]
        kind = _kind(line)
        if kind in _NUMERIC and patterns < MOST_PATTERNS:
            patterns += 1
            if alike := _alike(kind, line, lines, left):
                parts[kind].append(alike)
                is_left[alike.line] = False
                left = left[is_left[left]]
                continue
        if kind:
            others[kind].append(int(left[0]))
        left = left[1:]
    for kind, numbers in others.items():
        part = one_by_one(kind, [lines[number] for number in numbers])
        part.line = np.array(numbers)[part.line]
        parts[kind].append(part)
    found = {kind: _in_order(kind, own) for kind, own in parts.items()}
    return Parsed(found, unread_lines - sum(columns.rows for columns in found.values()))


def _kind(line: bytes) -> type[Any] | None:
    # {"kind":"step", in older runs {"kind": "step"
    head = line[:_HEAD_BYTES].split(b'"', 4)
    is_event = len(head) == 5 and head[1] == b"kind"
    name = head[3].decode(errors="replace") if is_event else ""
    return KINDS.get(UPGRADED.get(name, name))


def _in_order(kind: type[Any], parts: Sequence[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    whole = joined(kind, parts)
    return taken(whole, np.argsort(whole.line))


def _alike(kind: type[Any], line: bytes, lines: Lines, among: Array) -> Columns | None:
    """Of all lines that are like this one. None: this one or another must be looked at alone."""
    fields = fields_of(kind)
    pattern = pattern_of(line)
    content = _content(pattern.content, fields) if pattern else None
    if pattern is None or content is None:
        return None
    integers = {
        place
        for field in fields
        if field.type == "i8" and isinstance(place := content[field.name], Place)
    }
    alike = read_alike(pattern, integers, lines, among)
    if alike is None:
        return None
    columns = Columns(alike.lines, {}, {})
    for field in fields:
        value = content[field.name]
        if field.is_group:
            columns.groups[field.name] = {
                name: alike.numbers[place]
                for name, place in value.items()
                if isinstance(place, Place)
            }
        elif isinstance(value, Place):
            columns.plain[field.name] = alike.numbers[value]
        else:
            columns.plain[field.name] = np.full(columns.rows, value, dtype=field.type)
    return _without_empty_names(columns)


def one_by_one(kind: type[Any], lines: Sequence[bytes]) -> Columns:
    """Of those lines that are such events."""
    fields = fields_of(kind)
    # A kind with texts is checked by its own schema as well: here a text may be anything.
    has_no_texts = kind in _NUMERIC
    found = [
        (number, _content(_read(line), fields) if has_no_texts else _checked(line, fields))
        for number, line in enumerate(lines)
    ]
    contents = [content for _, content in found if content is not None]
    numbers = [number for number, content in found if content is not None]
    columns = Columns(np.array(numbers, dtype=np.int64), {}, {})
    for field in fields:
        values = [content[field.name] for content in contents]
        if field.is_group:
            columns.groups[field.name] = _group(values)
        elif field.type == OBJECT:
            columns.plain[field.name] = _array_of(values)
        elif field.type == "f8":
            columns.plain[field.name] = np.array([_number(value) for value in values], dtype="f8")
        else:
            columns.plain[field.name] = np.array(values, dtype=field.type)
    return _without_empty_names(columns)


def _without_empty_names(columns: Columns) -> Columns:
    """Of a group: names that no row has a number for."""
    for group, numbers in columns.groups.items():
        columns.groups[group] = {n: v for n, v in numbers.items() if not np.isnan(v).all()}
    return columns


def _array_of(values: Sequence[object]) -> Array:
    """Of the objects themselves, whatever NumPy would make of them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _read(line: bytes) -> object:
    """None: the line is torn."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _checked(line: bytes, fields: Sequence[Field]) -> dict[str, Any] | None:
    stamped = from_line(line)
    if stamped is None:
        return None
    head = {"wall_at": stamped.wall_at, "monotonic_at": stamped.monotonic_at}
    own = {f.name: getattr(stamped.event, f.name) for f in fields if f.name not in head}
    return head | own


def _content(found: object, fields: Sequence[Field]) -> dict[str, Any] | None:
    """A value of the right type for every field; None: it is something else than such an event."""
    if not isinstance(found, dict):
        return None
    content: dict[str, Any] = {}
    for field in fields:
        value = found.get(field.name)
        if value is None:
            if field.is_required:
                return None
            value = {} if field.is_group else field.default
        elif not _fits(value, "group" if field.is_group else field.type):
            return None
        content[field.name] = value
    return content


def _fits(value: object, type_name: str) -> bool:
    match type_name:
        case "?":
            return isinstance(value, bool)
        case "i8":
            return _is_integer(value) and -(1 << 63) <= value < 1 << 63
        case "f8":
            return isinstance(value, float) or _is_integer(value)
        case "group":
            return isinstance(value, dict)
    return True


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _group(values: Sequence[dict[str, Any]]) -> dict[str, Array]:
    order: list[str] = []
    for names in dict.fromkeys(tuple(value) for value in values):
        merge_order(order, names)
    return {name: np.array([_number(value.get(name)) for value in values]) for name in order}


def _number(value: Any) -> float:
    try:
        return float(value) if _fits(value, "f8") else math.nan
    except OverflowError:  # an integer of hundreds of digits
        return math.inf if value > 0 else -math.inf
