"""Markdown tables of a section: figures of its variants, and ratios within rounds. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from train_bench.tables import markdown_table, spread

from scaling_bench.bench import Bench
from scaling_bench.figures import Figures

Round = Mapping[str, Figures]
"""Variant -> its figures, of one round."""


class Column(NamedTuple):
    figure: str
    title: str
    shown: str
    """Format of a number."""
    scale: float = 1.0
    """Factor from seconds, bytes and tokens to what the title says."""


class Section(NamedTuple):
    title: str
    columns: Sequence[Column]
    ratios: Sequence[tuple[str, str]]
    """Variant and the one that it is compared with."""
    parts: Sequence[Callable[[Bench], Round]]
    """What one round measures: each returns one variant or several."""


def figure_table(section: Section, rounds: Sequence[Round]) -> str:
    """Returns medians over the rounds in which a variant was measured, with their extremes."""
    rows = []
    for variant in dict.fromkeys(name for one in rounds for name in one):
        cells = []
        for column in section.columns:
            figures = [
                column.scale * one[variant][column.figure]
                for one in rounds
                if column.figure in one.get(variant, {})
            ]
            cells.append(spread(figures, column.shown) if figures else "")
        rows.append([variant, *cells])
    return markdown_table(["variant", *(column.title for column in section.columns)], rows)


def ratio_table(section: Section, rounds: Sequence[Round]) -> str:
    """Returns ratios of each figure, taken within a round, with median and extremes."""
    rows = []
    for variant, base in section.ratios:
        both = [(one[variant], one[base]) for one in rounds if variant in one and base in one]
        if not both:
            continue
        cells = [ratio_cell(both, column.figure) for column in section.columns]
        rows.append([f"{variant} / {base}", *cells])
    if not rows:
        return "No variant was measured in the same round as the one that it is compared with."
    titles = [column.title.partition(",")[0] for column in section.columns]
    return markdown_table(["ratio", *titles], rows)


def ratio_cell(both: Sequence[tuple[Figures, Figures]], figure: str) -> str:
    """Returns the spread of a ratio; empty where a figure is missing or compared with nothing."""
    ratios = [
        one[figure] / base[figure] for one, base in both if figure in one and base.get(figure)
    ]
    return spread(ratios, ".2f") if ratios else ""
