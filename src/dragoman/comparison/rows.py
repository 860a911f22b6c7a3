"""What a comparison is made of."""

from dataclasses import dataclass
from typing import TypeAlias

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.rundir import RunDir

Value: TypeAlias = float | int | str | bool | None


@dataclass(frozen=True)
class ComparedRun:
    directory: RunDir
    facts: RunFacts


@dataclass(frozen=True)
class Row:
    what: str
    a: Value
    """None: the first run does not have it, or it is not known."""
    b: Value
    unit: str
    """As of the figures of a report; empty: a pure number or a word."""
    ratio: float | None
    """The second over the first; None: they cannot be divided."""


@dataclass(frozen=True)
class Group:
    title: str
    rows: list[Row]
    sentences: list[str]


@dataclass(frozen=True)
class Comparison:
    a: str
    """The folder of the first run, as it was named."""
    b: str
    settings: Group
    data: Group
    machines: Group
    speed: Group
    quality: Group
    cost: Group

    @property
    def groups(self) -> list[Group]:
        return [
            *(self.settings, self.data, self.machines),
            *(self.speed, self.quality, self.cost),
        ]


def row(what: str, a: Value, b: Value, unit: str = "") -> Row:
    return Row(what, a, b, unit, None)


def measured(what: str, a: float | None, b: float | None, unit: str) -> Row:
    """With the ratio, which is what speeds and costs are compared by."""
    ratio = b / a if a is not None and b is not None and a > 0 else None
    return Row(what, a, b, unit, ratio)


def differing(rows: list[Row]) -> list[Row]:
    return [each for each in rows if each.a != each.b]
