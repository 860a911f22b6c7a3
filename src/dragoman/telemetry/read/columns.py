"""Events of one kind as arrays: which fields there are, and how pieces become one."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
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

    line: Array
    """Which one of a text each row stood in."""
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
        columns.line[rows],
        {name: values[rows] for name, values in columns.plain.items()},
        {
            group: {name: values[rows] for name, values in numbers.items()}
            for group, numbers in columns.groups.items()
        },
    )


def joined(
    kind: type[Any],
    parts: Sequence[Columns],
    each: Callable[[Callable[..., Array], Iterable[list[Array]]], Iterable[Array]] = map,
) -> Columns:
    """One behind the other. Takes the parts apart as it goes: no column is held twice for long.

    `each` is map, or that of a pool of threads.
    """
    line = np.concatenate([np.empty(0, dtype=np.int64), *(part.line for part in parts)])
    whole = Columns(line, {}, {})
    for field in fields_of(kind):
        if field.is_group:
            order: list[str] = []
            for part in parts:
                merge_order(order, part.groups[field.name])
            own = each(np.concatenate, (_group_column(parts, field.name, name) for name in order))
            whole.groups[field.name] = dict(zip(order, own, strict=True))
    plain = [field for field in fields_of(kind) if not field.is_group]
    own = each(np.concatenate, (_plain_column(parts, field) for field in plain))
    whole.plain.update(zip((field.name for field in plain), own, strict=True))
    return whole


def _group_column(parts: Sequence[Columns], group: str, name: str) -> list[Array]:
    found = [part.groups[group].pop(name, None) for part in parts]
    return [
        np.full(part.rows, np.nan) if values is None else values
        for part, values in zip(parts, found, strict=True)
    ]


def _plain_column(parts: Sequence[Columns], field: Field) -> list[Array]:
    return [np.empty(0, dtype=field.type), *(part.plain.pop(field.name) for part in parts)]


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
