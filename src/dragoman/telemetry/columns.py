"""Events of one kind as arrays: which fields there are, and how pieces become one."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

OBJECT = "O"
_GROUP = dict[str, float]
_TYPES: dict[Any, str] = {float: "f8", float | None: "f8", int: "i8", bool: "?"}


class Field(NamedTuple):
    name: str
    type: str
    """NumPy's name of it."""
    is_group: bool
    is_required: bool
    """A line without it is no such event; of all else, old runs have the default."""
    default: Any


@dataclass
class Columns:
    """Equally long arrays; a group has one for each name that occurs in it, in their order."""

    lines: int
    """How many were read; some may have been no such event."""
    line: Array
    """Which of them each row stood in."""
    plain: dict[str, Array]
    groups: dict[str, dict[str, Array]]

    @property
    def rows(self) -> int:
        return len(self.line)


def fields_of(kind: type[Any]) -> tuple[Field, ...]:
    """The two times that every event carries, then the event's own."""
    times = (Field(name, "f8", False, True, None) for name in ("wall_at", "monotonic_at"))
    return *times, *(_field(field) for field in dataclasses.fields(kind))


def is_numeric(kind: type[Any]) -> bool:
    """Nothing but numbers, and groups of numbers."""
    return all(field.is_group or field.type != OBJECT for field in fields_of(kind))


def merge_order(known: list[str], seen: Iterable[str]) -> None:
    """Put names that are new into `known`, each behind the one that it was seen behind."""
    place = 0
    for name in seen:
        if name in known:
            place = known.index(name) + 1
        else:
            known.insert(place, name)
            place += 1


def taken(columns: Columns, rows: Array) -> Columns:
    """The rows for which the mask holds, or of these numbers."""
    return Columns(
        columns.lines,
        columns.line[rows],
        {name: values[rows] for name, values in columns.plain.items()},
        {
            group: {name: values[rows] for name, values in numbers.items()}
            for group, numbers in columns.groups.items()
        },
    )


def joined(kind: type[Any], parts: Sequence[Columns]) -> Columns:
    """One behind the other. Takes the parts apart as it goes: no column is held twice for long."""
    rows = [part.rows for part in parts]
    line = np.concatenate([np.empty(0, dtype=np.int64), *(part.line for part in parts)])
    whole = Columns(sum(part.lines for part in parts), line, {}, {})
    for field in fields_of(kind):
        if field.is_group:
            own = [part.groups.pop(field.name) for part in parts]
            whole.groups[field.name] = _joined_group(own, rows)
        else:
            arrays = [part.plain.pop(field.name) for part in parts]
            whole.plain[field.name] = np.concatenate([np.empty(0, dtype=field.type), *arrays])
    return whole


def _joined_group(parts: Sequence[dict[str, Array]], rows: Sequence[int]) -> dict[str, Array]:
    order: list[str] = []
    for part in parts:
        merge_order(order, part)
    whole: dict[str, Array] = {}
    for name in order:
        whole[name] = np.full(sum(rows), np.nan)
        begin = 0
        for part, count in zip(parts, rows, strict=True):
            if name in part:
                whole[name][begin : begin + count] = part.pop(name)
            begin += count
    return whole


def _field(field: "dataclasses.Field[Any]") -> Field:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    is_required = default is dataclasses.MISSING and field.type != float | None
    if default is dataclasses.MISSING or default is None:
        default = math.nan if field.type == float | None else None
    return Field(
        field.name, _TYPES.get(field.type, OBJECT), field.type == _GROUP, is_required, default
    )
