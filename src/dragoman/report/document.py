"""What a report is made of, before it is Markdown or HTML. Texts are plain: writers escape them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.report.content import Answer, Sample
from dragoman.report.health import Health


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    """A letter a column: l for text, r for numbers."""


@dataclass(frozen=True)
class Line:
    name: str
    at: Sequence[float]
    """Steps, or seconds since 1970."""
    values: Sequence[float | None]
    lows: Sequence[float | None] = ()
    highs: Sequence[float | None] = ()
    """With `lows`: how far the truth, or what a point stands for, reaches. Empty: not told."""
    color: int | None = None
    """Lines of the same number have the same color; None: the next one."""
    style: Literal["line", "dashed", "context"] = "line"
    """context: in the background, to look at and not to compare with the others."""


@dataclass(frozen=True)
class Chart:
    """Lines over the steps or over time."""

    title: str
    value_title: str
    number_format: str
    """The same for Python and for Plotly: .3f"""
    lines: Sequence[Line]
    axis: Literal["steps", "time"] = "steps"
    spread: Literal["error bars", "band"] = "error bars"
    """How lows and highs are drawn."""
    shows_zero: bool = True
    value_range: tuple[float, float] | None = None
    """What to show first, where all of it would hide what matters; None: all."""
    is_stacked: bool = False


@dataclass(frozen=True)
class Histogram:
    title: str
    value_title: str
    edges: Sequence[float]
    counts: Sequence[int]
    marks: Sequence[tuple[str, float]]
    """Values that are worth a line: (name, where)."""
    note: str = ""


@dataclass(frozen=True)
class Span:
    row: str
    begin_at: float
    end_at: float
    text: str
    health: Health


@dataclass(frozen=True)
class Mark:
    row: str
    at: float
    text: str
    kind: Literal["fault", "evaluation", "checkpoint"]


@dataclass(frozen=True)
class Timeline:
    title: str
    spans: Sequence[Span]
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Samples:
    title: str
    samples: Sequence[Sample]


@dataclass(frozen=True)
class Verbatim:
    """Long text to look up; folded where that can be."""

    title: str
    text: str


Plot: TypeAlias = Chart | Histogram | Timeline
Block: TypeAlias = Paragraph | Table | Plot | Samples | Verbatim


@dataclass(frozen=True)
class Question:
    """One of the eleven, or a finding that nobody asked for."""

    number: int | None
    """None: nobody asked."""
    short: str
    """What a card is headed with."""
    answer: Answer
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        return self.answer.key


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    lead: str
    """What the run is and where it stands, in a few sentences."""
    questions: Sequence[Question]
    also: Sequence[Question]
    sections: Sequence[Section]
