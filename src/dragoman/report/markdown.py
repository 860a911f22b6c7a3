"""report.md: a document comes in, Markdown goes out that is pleasant in a terminal too."""

import re
from collections.abc import Iterable, Sequence

from dragoman.report.curves import thinned
from dragoman.report.document import (
    Block,
    Chart,
    Document,
    KeyFigures,
    Line,
    Paragraph,
    Samples,
    Shares,
    Table,
    Verbatim,
)
from dragoman.report.wording import count, percent

BAR_LENGTH = 30
SPARKLINE_LENGTH = 32
_SPARKS = "▁▂▃▄▅▆▇█"

# Whatever Markdown could take for markup, in text that is only text. Underscores inside a word
# are harmless, and names of settings stay readable.
_MARKUP = re.compile(r"[\\`*<>\[\]|#]|~(?=~)|&(?=[#\w]+;)|(?<!\w)_|_(?!\w)")


def to_markdown(document: Document) -> str:
    parts = [f"# {escaped(document.title)}", escaped(document.subtitle)]
    for section in document.sections:
        parts.append(f"## {escaped(section.title)}")
        parts += [_block(block) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """On one line, and shown as it is."""
    return _MARKUP.sub(lambda found: "\\" + found[0], " ".join(text.split()))


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return escaped(text)
        case KeyFigures(figures):
            rows = [[figure.label, figure.value, figure.note] for figure in figures]
            return _table(["", "", ""], rows, "lrl")
        case Table(header, rows, alignment):
            return _table(header, rows, alignment)
        case Shares(title, parts):
            cells = [
                [part.label, part.value, percent(part.share), _bar(part.share)] for part in parts
            ]
            return _table([title, "", "", ""], cells, "lrrl")
        case Chart():
            return _chart(block)
        case Samples(title, samples):
            return f"{escaped(title)}\n\n" + "\n".join(
                f"{number}. {escaped(sample.source)}\n"
                f"    - {escaped(sample.translation)}"
                + (
                    " ✓ (the reference)"
                    if sample.equals_reference
                    else f"\n    - reference: {escaped(sample.reference)}"
                )
                for number, sample in enumerate(samples, 1)
            )
        case Verbatim(title, text):
            # A fence ends at the first run of as many backticks.
            longest = max((len(run) for run in re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            return f"{escaped(title)}\n\n{fence}\n{text.rstrip()}\n{fence}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], alignment: str) -> str:
    """Padded, so that it is a table before anything renders it."""
    cells = [[escaped(cell) for cell in row] for row in (header, *rows)]
    widths = [max(3, *(len(cell) for cell in column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if align == "r" else cell.ljust(width)
            for cell, width, align in zip(row, widths, alignment, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        "-" * (width - 1) + ":" if align == "r" else "-" * width
        for width, align in zip(widths, alignment, strict=True)
    )
    return "\n".join([line(cells[0]), f"| {' | '.join(rule)} |", *map(line, cells[1:])])


def _chart(chart: Chart) -> str:
    """A row a line: its course as a sparkline, and the values to read it by."""
    header = ["", "course", "first", "last", "lowest", "highest"]
    rows = [_chart_row(line, chart.number_format) for line in chart.lines]
    title = f"{chart.title} ({chart.value_title}) over the steps:"
    return f"{escaped(title)}\n\n{_table(header, rows, 'llrrrr')}"


def _chart_row(line: Line, number_format: str) -> list[str]:
    points = [
        (value, step)
        for step, value in zip(line.steps, line.values, strict=True)
        if value is not None
    ]
    if not points:
        return [line.name, "no finite value", "", "", "", ""]
    lowest, highest = min(points), max(points)
    return [
        line.name,
        sparkline([value for value, _ in points]),
        f"{points[0][0]:{number_format}}",
        f"{points[-1][0]:{number_format}}",
        f"{lowest[0]:{number_format}} at {count(lowest[1])}",
        f"{highest[0]:{number_format}} at {count(highest[1])}",
    ]


def sparkline(values: Sequence[float]) -> str:
    shown = thinned(values, SPARKLINE_LENGTH)
    lowest, highest = min(shown), max(shown)
    if lowest == highest:
        return _SPARKS[0] * len(shown)
    scale = (len(_SPARKS) - 1) / (highest - lowest)
    return "".join(_SPARKS[round((value - lowest) * scale)] for value in shown)


def _bar(share: float) -> str:
    return "█" * round(BAR_LENGTH * share)
