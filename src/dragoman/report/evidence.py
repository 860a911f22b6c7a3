"""The figures of an answer as tables: those that carry it, and all others to look up."""

from collections.abc import Sequence

from dragoman.report.content import Answer, EvidenceFigure
from dragoman.report.document import Table
from dragoman.report.wording import figure_interval, figure_value

# An answer names its figures in the order of their weight.
FIRST_FIGURES = 8


def first_figures(answer: Answer) -> Table | None:
    return _table(answer.evidence[: _cut(answer)])


def more_figures(answer: Answer) -> Table | None:
    """None: the first ones are all."""
    return _table(answer.evidence[_cut(answer) :])


def _cut(answer: Answer) -> int:
    """One or two are not worth a fold."""
    number = len(answer.evidence)
    return number if number <= FIRST_FIGURES + 2 else FIRST_FIGURES


def _table(figures: Sequence[EvidenceFigure]) -> Table | None:
    """Columns that would be empty are left out."""
    if not figures:
        return None
    columns = [
        ("figure", "l", [figure.name for figure in figures]),
        ("value", "r", [figure_value(figure) for figure in figures]),
        ("95 % interval", "r", [figure_interval(figure) for figure in figures]),
        ("note", "l", [figure.note for figure in figures]),
    ]
    shown = [column for column in columns if any(column[2])]
    return Table(
        header=[title for title, _, _ in shown],
        rows=list(zip(*(cells for _, _, cells in shown), strict=True)),
        alignment="".join(align for _, align, _ in shown),
    )
