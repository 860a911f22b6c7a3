"""report.md: a document comes in, Markdown goes out that is pleasant in a terminal too."""

import re
from collections.abc import Iterable, Sequence

from dragoman.diagnosis.findings import HEALTH_SIGNS, HEALTH_WORDS
from dragoman.diagnosis.phrasing import count, instant, seconds
from dragoman.report.content import AdviceContent, Sample
from dragoman.report.curves import thinned
from dragoman.report.document import (
    Block,
    Chart,
    Document,
    Gantt,
    Histogram,
    Line,
    Paragraph,
    QuestionSection,
    Samples,
    StackedBars,
    TextTable,
    Verbatim,
)

SPARKLINE_LENGTH = 32
ROWS_SHOWN = 20
_SPARKS = "▁▂▃▄▅▆▇█"

# Whatever Markdown could take for markup, in text that is only text. Underscores inside a word
# are harmless, and names of settings stay readable.
_MARKUP = re.compile(r"[\\`*<>\[\]|#]|~(?=~)|&(?=[#\w]+;)|(?<!\w)_|_(?!\w)")


def to_markdown(document: Document) -> str:
    parts = [f"# {escaped(document.title)}", escaped(document.subtitle), escaped(document.lead)]
    if document.command:
        parts.append(fenced(document.command, "sh"))
    parts.append(_verdicts(document.questions))
    if document.to_do:
        parts.append("**What to do, most pressing first**")
        parts += _numbered(
            _advice(item.advice, f"{item.section.title}: ") for item in document.to_do
        )
    for question in (*document.questions, *document.also):
        prefix = f"{question.number}." if question.number else "Also:"
        parts.append(f"## {prefix} {escaped(question.answer.question)}")
        parts += _answer(question)
    for appendix in document.appendices:
        parts.append(f"## {escaped(appendix.title)}")
        parts += map(_block, appendix.blocks)
    return "\n\n".join(parts) + "\n"


def _verdicts(questions: Sequence[QuestionSection]) -> str:
    rows = [
        [
            question.title,
            question.answer.verdict,
            f"{HEALTH_SIGNS[question.answer.health]} {HEALTH_WORDS[question.answer.health]}",
            question.answer.confidence,
        ]
        for question in questions
    ]
    return _table(["question", "verdict", "", "confidence"], rows, "llll")


def _answer(question: QuestionSection) -> list[str]:
    answer = question.answer
    verdict = f"{HEALTH_SIGNS[answer.health]} **{escaped(answer.verdict)}**"
    parts = [f"{verdict} ({HEALTH_WORDS[answer.health]}, {question.how_sure})"]
    if answer.plain:
        parts.append(f"**{escaped(answer.plain)}**")
    parts.append(escaped(answer.sentence))
    if answer.advice:
        parts += ["What to do:", *_numbered(map(_advice, answer.advice))]
    if question.words:
        explained = "; ".join(f"*{word}*: {escaped(meaning)}" for word, meaning in question.words)
        parts.append(f"Words: {explained}.")
    if question.figures:
        parts.append(_block(question.figures))
    if more := question.more_figures:
        title = f"<details><summary>{len(more.rows)} more figures</summary>"
        parts.append(f"{title}\n\n{_block(more)}\n\n</details>")
    return parts + [_block(plot) for plot in question.plots]


def _numbered(items: Iterable[str]) -> list[str]:
    """Returns the items of a list, whose further lines are indented by as much as its number."""
    return [f"{number}. {_indented(item)}" for number, item in enumerate(items, 1)]


def _indented(item: str) -> str:
    return "\n".join(f"   {line}" if line else line for line in item.split("\n")).lstrip()


def _advice(advice: AdviceContent, prefix: str = "") -> str:
    saves = f" ({escaped(advice.saves)})" if advice.saves else ""
    text = f"{escaped(prefix + advice.text)}{saves}"
    if advice.command:
        text += f"\n\n{fenced(advice.command, 'toml' if advice.is_recipe else 'sh')}"
    if advice.recipe:
        text += f"\n\nor, in a recipe:\n\n{fenced(advice.recipe, 'toml')}"
    return text


def fenced(text: str, language: str = "") -> str:
    """Returns a block of code, which ends at the first run of as many backticks as it begins."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def escaped(text: str) -> str:
    """Returns the text on one line, without anything that Markdown takes for markup."""
    return _MARKUP.sub(lambda found: "\\" + found[0], " ".join(text.split()))


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return escaped(text)
        case TextTable(header, rows, alignment):
            return _table(header, rows, alignment)
        case Chart():
            return _chart(block)
        case StackedBars():
            return _stacked_bars(block)
        case Histogram():
            return _histogram(block)
        case Gantt():
            return _gantt(block)
        case Samples(title, samples):
            items = (f"{number}. {_sample(sample)}" for number, sample in enumerate(samples, 1))
            return f"{escaped(title)}\n\n" + "\n".join(items)
        case Verbatim(title, text):
            folded = f"<details><summary>{escaped(title)}</summary>"
            return f"{folded}\n\n{fenced(text)}\n\n</details>"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], alignment: str) -> str:
    """Pads the cells, so that it is a table before anything renders it."""
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
    """Returns a row for each line: its course as a sparkline, and its extreme values."""
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


def _stacked_bars(bars: StackedBars) -> str:
    lengths = zip(*(of_rows for _, of_rows in bars.parts), strict=True)
    rows = [
        [row, *("-" if length is None else f"{length:{bars.number_format}}" for length in own)]
        for row, own in zip(bars.rows, lengths, strict=True)
    ]
    header = ["", *(name for name, _ in bars.parts)]
    title = f"{bars.title} ({bars.value_title}):"
    return f"{escaped(title)}\n\n{_table(header, rows, 'l' + 'r' * len(bars.parts))}"


def _histogram(histogram: Histogram) -> str:
    low, high = histogram.edges[0], histogram.edges[-1]
    bars = sparkline([float(number) for number in histogram.counts])
    span = f"{seconds(low)} {bars} {seconds(high)}"
    return f"{escaped(histogram.title)}: {span}. {escaped(histogram.note)}".rstrip()


def _gantt(gantt: Gantt) -> str:
    bars = [
        [bar.row, instant(bar.begin_at), instant(bar.end_at), bar.text]
        for bar in gantt.bars[-ROWS_SHOWN:]
    ]
    marks = [[mark.row, instant(mark.at), "", mark.text] for mark in gantt.marks[-ROWS_SHOWN:]]
    return _table([gantt.title, "from", "to", ""], [*bars, *marks], "llll")


def _sample(sample: Sample) -> str:
    translation = f"{escaped(sample.source)}\n    - {escaped(sample.translation)}"
    if sample.equals_reference:
        return f"{translation} ✓ (the reference)"
    return f"{translation}\n    - reference: {escaped(sample.reference)}"


def sparkline(values: Sequence[float]) -> str:
    shown = thinned(values, SPARKLINE_LENGTH)
    lowest, highest = min(shown), max(shown)
    if lowest == highest:
        return _SPARKS[0] * len(shown)
    scale = (len(_SPARKS) - 1) / (highest - lowest)
    return "".join(_SPARKS[round((value - lowest) * scale)] for value in shown)
