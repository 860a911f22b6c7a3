"""What a comparison consists of: aspects, each with rows of two values, and sentences."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = float | int | str | bool | None


@dataclass(frozen=True)
class Row:
    what: str
    a: Value
    """None: the first run does not have it, or it is not known."""
    b: Value
    unit: str = ""
    """As of the figures of a report; empty: a pure number or a word."""
    ratio: float | None = None
    """The second over the first; None: they are not compared by their ratio."""


@dataclass(frozen=True)
class Aspect:
    title: str
    rows: list[Row]
    sentences: list[str]


def measured(what: str, a: float | None, b: float | None, unit: str) -> Row:
    """Returns a row with the ratio, by which speeds and costs are compared. NaN is not known."""
    a, b = (None if value is None or math.isnan(value) else value for value in (a, b))
    ratio = b / a if a is not None and b is not None and a > 0 else None
    return Row(what, a, b, unit, ratio)


def differing(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.a != row.b]
