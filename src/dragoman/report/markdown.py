"""report.md: a document comes in, Markdown goes out that is pleasant in a terminal too."""

import re
from collections.abc import Iterable, Sequence

from dragoman.report.curves import thinned
from dragoman.report.document import (
    Block,
    Chart,
    Document,
    Histogram,
    Line,
    Paragraph,
    Question,
    Samples,
    Table,
    Timeline,
    Verbatim,
)
from dragoman.report.evidence import first_figures, more_figures
from dragoman.report.health import SIGNS, WORDS
from dragoman.report.priorities import to_do
from dragoman.report.wording import count, instant, seconds

SPARKLINE_LENGTH = 32
ROWS_SHOWN = 20
_SPARKS = "▁▂▃▄▅▆▇█"

# Whatever Markdown could take for markup, in text that is only text. Underscores inside a word
# are harmless, and names of settings stay readable.
_MARKUP = re.compile(r"[\\`*<>\[\]|#]|~(?=~)|&(?=[#\w]+;)|(?<!\w)_|_(?!\w)")


def to_markdown(document: Document) -> str:
    parts = [f"# {escaped(document.title)}", escaped(document.subtitle), escaped(document.lead)]
    parts.append(_verdicts(document.questions))
    if questions := to_do(document):
        parts.append("**What to do, most pressing first**")
        parts.append(
            "\n".join(
                f"{number}. {escaped(question.short)}: {escaped(question.answer.advice)}"
                for number, question in enumerate(questions, 1)
            )
        )
    for question in document.questions:
        parts += [f"## {question.number}. {escaped(question.answer.question)}", *_said(question)]
    for question in document.also:
        parts += [f"## Also: {escaped(question.answer.question)}", *_said(question)]
    for section in document.sections:
        parts.append(f"## {escaped(section.title)}")
        parts += [_block(block) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _verdicts(questions: Sequence[Question]) -> str:
    rows = [
        [
            question.short,
            question.answer.verdict,
            f"{SIGNS[question.answer.health]} {WORDS[question.answer.health]}",
            question.answer.confidence,
        ]
        for question in questions
    ]
    return _table(["question", "verdict", "", "confidence"], rows, "llll")


def _said(question: Question) -> list[str]:
    answer = question.answer
    parts = [f"**{escaped(answer.verdict)}** {escaped(answer.sentence)}"]
    if answer.advice:
        parts.append(f"What to do: {escaped(answer.advice)}")
    if first := first_figures(answer):
        parts.append(_block(first))
    if more := more_figures(answer):
        title = f"<details><summary>{len(more.rows)} more figures</summary>"
        parts.append(f"{title}\n\n{_block(more)}\n\n</details>")
    return parts + [_block(block) for block in question.blocks]


def escaped(text: str) -> str:
    """On one line, and shown as it is."""
    return _MARKUP.sub(lambda found: "\\" + found[0], " ".join(text.split()))


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return escaped(text)
        case Table(header, rows, alignment):
            return _table(header, rows, alignment)
        case Chart():
            return _chart(block)
        case Histogram():
            return _histogram(block)
        case Timeline():
            return _timeline(block)
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
            folded = f"<details><summary>{escaped(title)}</summary>"
            return f"{folded}\n\n{fence}\n{text.rstrip()}\n{fence}\n\n</details>"


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
    rows = [_chart_row(line, chart) for line in chart.lines]
    over = "time" if chart.axis == "time" else "the steps"
    title = f"{chart.title} ({chart.value_title}) over {over}:"
    return f"{escaped(title)}\n\n{_table(header, rows, 'llrrrr')}"


def _chart_row(line: Line, chart: Chart) -> list[str]:
    points = [
        (value, at) for at, value in zip(line.at, line.values, strict=True) if value is not None
    ]
    if not points:
        return [line.name, "no finite value", "", "", "", ""]
    shown = chart.number_format
    where = instant if chart.axis == "time" else lambda at: count(int(at))
    lowest, highest = min(points), max(points)
    return [
        line.name,
        sparkline([value for value, _ in points]),
        f"{points[0][0]:{shown}}",
        f"{points[-1][0]:{shown}}",
        f"{lowest[0]:{shown}} at {where(lowest[1])}",
        f"{highest[0]:{shown}} at {where(highest[1])}",
    ]


def _histogram(histogram: Histogram) -> str:
    low, high = histogram.edges[0], histogram.edges[-1]
    bars = sparkline([float(number) for number in histogram.counts])
    span = f"{seconds(low)} {bars} {seconds(high)}"
    return f"{escaped(histogram.title)}: {span}. {escaped(histogram.note)}".rstrip()


def _timeline(timeline: Timeline) -> str:
    rows = [
        [span.row, instant(span.begin_at), instant(span.end_at), span.text]
        for span in timeline.spans[-ROWS_SHOWN:]
    ]
    rows += [[mark.row, instant(mark.at), "", mark.text] for mark in timeline.marks[-ROWS_SHOWN:]]
    header = [timeline.title, "from", "to", ""]
    return _table(header, rows, "llll")


def sparkline(values: Sequence[float]) -> str:
    shown = thinned(values, SPARKLINE_LENGTH)
    lowest, highest = min(shown), max(shown)
    if lowest == highest:
        return _SPARKS[0] * len(shown)
    scale = (len(_SPARKS) - 1) / (highest - lowest)
    return "".join(_SPARKS[round((value - lowest) * scale)] for value in shown)
