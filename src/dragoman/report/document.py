"""What a report is made of, before it is Markdown or HTML. Texts are plain: writers escape them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.report.facts import Sample


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class KeyFigure:
    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class KeyFigures:
    """What a person looks for first, large."""

    figures: Sequence[KeyFigure]


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    """A letter a column: l for text, r for numbers."""


@dataclass(frozen=True)
class Share:
    label: str
    value: str
    share: float


@dataclass(frozen=True)
class Shares:
    """Parts of a whole as bars."""

    title: str
    parts: Sequence[Share]


@dataclass(frozen=True)
class Line:
    name: str
    steps: Sequence[int]
    values: Sequence[float | None]
    is_context: bool = False
    """Drawn in the background: to look at, not to compare with the others."""


@dataclass(frozen=True)
class Chart:
    """Lines over the steps."""

    title: str
    value_title: str
    number_format: str
    """The same for Python and for Plotly: .3f"""
    lines: Sequence[Line]
    shows_zero: bool = True
    is_stacked: bool = False


@dataclass(frozen=True)
class Samples:
    title: str
    samples: Sequence[Sample]


@dataclass(frozen=True)
class Verbatim:
    """Long text to look up; folded where that can be."""

    title: str
    text: str


Block: TypeAlias = Paragraph | KeyFigures | Table | Shares | Chart | Samples | Verbatim


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    sections: Sequence[Section]
