"""What a report consists of before it is Markdown or HTML. Texts are plain: writers escape them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.diagnosis.findings import Health
from dragoman.report.content import AdviceContent, Answer, Sample


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class TextTable:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    """A letter for each column: l for text, r for numbers."""


@dataclass(frozen=True)
class Line:
    name: str
    at: Sequence[float]
    """Steps, or seconds since 1970."""
    values: Sequence[float | None]
    lows: Sequence[float | None] = ()
    highs: Sequence[float | None] = ()
    """With `lows`: an interval, or the extremes of what a point stands for. Empty: neither."""
    color: int | None = None
    """Lines of the same number have the same color; None: the next one."""
    style: Literal["line", "dashed", "context"] = "line"
    """context: in the background, not to be compared with the others."""


@dataclass(frozen=True)
class Chart:
    """Lines over the steps, over time, or over another number."""

    title: str
    value_title: str
    number_format: str
    """The same for Python and for Plotly: .3f"""
    lines: Sequence[Line]
    axis: Literal["steps", "time", "number"] = "steps"
    axis_title: str = ""
    """Of another number, with its unit."""
    is_logarithmic: bool = False
    """Both axes, for what spans orders of magnitude; with `axis` number."""
    spread: Literal["error bars", "band"] = "error bars"
    """How lows and highs are drawn."""
    shows_zero: bool = True
    value_range: tuple[float, float] | None = None
    """What to show first, where all of it would hide what matters; None: all."""
    is_stacked: bool = False
    axis_range: tuple[float, float] | None = None
    """Of the steps, or of time, so that several charts can be read below each other; None: that of
    the lines."""


@dataclass(frozen=True)
class StackedBars:
    """One bar a row, made of the same parts, each with its own length."""

    title: str
    value_title: str
    number_format: str
    """The same for Python and for Plotly: .3f"""
    rows: Sequence[str]
    parts: Sequence[tuple[str, Sequence[float | None]]]
    """Name of a part, and its length in each row; None: the row has no such part."""


@dataclass(frozen=True)
class Histogram:
    title: str
    value_title: str
    edges: Sequence[float]
    counts: Sequence[int]
    marks: Sequence[tuple[str, float]]
    """Vertical lines: (name, value)."""
    note: str = ""


@dataclass(frozen=True)
class GanttBar:
    row: str
    begin_at: float
    end_at: float
    text: str
    health: Health


@dataclass(frozen=True)
class GanttMark:
    """A fault at one moment."""

    row: str
    at: float
    text: str


@dataclass(frozen=True)
class Gantt:
    title: str
    bars: Sequence[GanttBar]
    marks: Sequence[GanttMark]


@dataclass(frozen=True)
class Samples:
    title: str
    samples: Sequence[Sample]


@dataclass(frozen=True)
class Verbatim:
    """Long text to look up; folded where that can be."""

    title: str
    text: str


Plot: TypeAlias = Chart | StackedBars | Histogram | Gantt
Block: TypeAlias = Paragraph | TextTable | Plot | Samples | Verbatim


@dataclass(frozen=True)
class QuestionSection:
    number: int | None
    """None: it is not one of those that are always answered."""
    title: str
    answer: Answer
    words: Sequence[tuple[str, str]]
    """Jargon that the answer uses, and what it means."""
    figures: TextTable | None
    """The most important ones."""
    more_figures: TextTable | None
    plots: Sequence[Plot]

    @property
    def how_sure(self) -> str:
        confidence = self.answer.confidence
        return "no answer yet" if confidence == "none" else f"{confidence} confidence"


@dataclass(frozen=True)
class ToDo:
    section: QuestionSection
    """That gives the reasons."""
    advice: AdviceContent


@dataclass(frozen=True)
class Appendix:
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
    """What the run is and what its state is, in a few sentences."""
    command: str
    """Resumes the run; empty: it needs none."""
    questions: Sequence[QuestionSection]
    also: Sequence[QuestionSection]
    to_do: Sequence[ToDo]
    """What should be done of all, the most urgent first."""
    appendices: Sequence[Appendix]
