"""Many events of one kind at once: columns come in, lines go out as `to_line` would write them.

`to_line` writes one example with a mark in place of each number, and the columns fill the marks.
So the form of a line is known in one place only, and a long run is written in seconds.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dragoman.telemetry.events import Stamped, to_line

_FIRST_MARK = 777_000_000
_MARK = re.compile(r"777000\d{3}")
_DIGITS = 6

Columns = Mapping[str, Any]
"""Field -> an array, or for fields like parts_s: name -> an array. Other values are the same in
all lines."""


def lines_of(kind: type[Any], wall_at: Any, monotonic_at: Any, columns: Columns) -> list[str]:
    slots: list[Sequence[object]] = []

    def mark(name: str, values: Any) -> Any:
        if isinstance(values, dict):
            return {part: mark(f"{name}.{part}", value) for part, value in values.items()}
        if not isinstance(values, np.ndarray):
            return values
        is_time = name.partition(".")[0].endswith(("_s", "_at")) or name == "epoch"
        slots.append(_written(np.round(values, _DIGITS) if is_time else values))
        return _FIRST_MARK + len(slots) - 1

    walls, monotonics = mark("wall_at", wall_at), mark("monotonic_at", monotonic_at)
    event = kind(**{name: mark(name, values) for name, values in columns.items()})
    example = to_line(Stamped(walls, monotonics, event))
    order = [int(found[0]) - _FIRST_MARK for found in _MARK.finditer(example)]
    template = _MARK.sub("%s", example.replace("%", "%%"))
    rows = zip(*(slots[number] for number in order), strict=True)
    return list(map(template.__mod__, rows))


def _written(values: Any) -> Sequence[object]:
    if values.dtype == bool:
        return ["true" if value else "false" for value in values.tolist()]
    written: list[object] = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return [value if np.isfinite(value) else "null" for value in written]
    return written
