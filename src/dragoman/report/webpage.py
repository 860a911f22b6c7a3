"""report.html: a document comes in, one page goes out that needs no network and no server.

All of it is readable without JavaScript, but for the plots.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

import plotly.offline

from dragoman.diagnosis.findings import HEALTH_SIGNS, HEALTH_WORDS
from dragoman.report.content import Answer, Sample
from dragoman.report.document import (
    Appendix,
    Block,
    Chart,
    Document,
    Gantt,
    Histogram,
    Paragraph,
    Plot,
    QuestionSection,
    Samples,
    TextTable,
    Verbatim,
)
from dragoman.report.plotly_figures import figure_json

# The browser itself then refuses whatever the page, or the plotting library, might try to load.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def to_html(document: Document) -> str:
    title = escape(document.title)
    also = [_question(question) for question in document.also]
    # The text comes first and the library, 5 MB of it, last: the page can be read at once.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{_shipped("page.css")}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{escape(document.subtitle)}</p>
<p class="lead">{escape(document.lead)}</p>
</header>
<main>
<ol class="cards">
{_lines(_card(question) for question in document.questions)}
</ol>
{_to_do(document.to_do)}
<nav>{_links(document)}</nav>
{_lines(_question(question) for question in document.questions)}
{_group("Also found", also) if also else ""}
{_group("The run itself", [_appendix(appendix) for appendix in document.appendices])}
</main>
<script>{plotly.offline.get_plotlyjs()}</script>
<script>
{_shipped("page.js")}</script>
</body>
</html>
"""


def _shipped(name: str) -> str:
    return resources.files("dragoman.report").joinpath(name).read_text(encoding="utf-8")


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _group(title: str, parts: Sequence[str]) -> str:
    return f'<h2 class="group">{escape(title)}</h2>\n{_lines(parts)}'


def _links(document: Document) -> str:
    found = [(question.answer.key, question.title) for question in document.also]
    found += [(appendix.anchor, appendix.title) for appendix in document.appendices]
    return "".join(f'<a href="#{escape(anchor)}">{escape(name)}</a>' for anchor, name in found)


def _card(question: QuestionSection) -> str:
    answer = question.answer
    return (
        f'<li><a class="card {answer.health}" href="#{escape(answer.key)}">'
        f'<span class="short">{escape(question.title)}</span>'
        f'<span class="verdict">{escape(answer.verdict)}</span>'
        f'<span class="how">{_sign(answer)}</span>'
        f'<span class="how">{escape(_confidence(answer))}</span></a></li>'
    )


def _sign(answer: Answer) -> str:
    return f'<span class="sign">{HEALTH_SIGNS[answer.health]}</span> {HEALTH_WORDS[answer.health]}'


def _confidence(answer: Answer) -> str:
    return "no answer yet" if answer.confidence == "none" else f"{answer.confidence} confidence"


def _to_do(questions: Sequence[QuestionSection]) -> str:
    if not questions:
        return ""
    items = _lines(
        f'<li><a href="#{escape(question.answer.key)}">{escape(question.title)}</a>: '
        f"{escape(question.answer.advice)}</li>"
        for question in questions
    )
    return f'<div class="todo"><h2>What to do, most pressing first</h2>\n<ol>{items}</ol></div>'


def _question(question: QuestionSection) -> str:
    answer = question.answer
    number = f'<span class="number">{question.number}</span> ' if question.number else ""
    advice = (
        f'<p class="advice"><b>What to do:</b> {escape(answer.advice)}</p>' if answer.advice else ""
    )
    table = _evidence(question)
    beside = _lines(_block(plot) for plot in question.plots) or table
    return (
        f'<section id="{escape(answer.key)}" class="{answer.health}">\n'
        f"<h2>{number}{escape(answer.question)}</h2>\n"
        f'<p class="said"><span class="pill">{HEALTH_SIGNS[answer.health]} '
        f"{escape(answer.verdict)}</span><small>{HEALTH_WORDS[answer.health]}, "
        f"{escape(_confidence(answer))}</small></p>\n"
        f'<div class="answer"><div><p>{escape(answer.sentence)}</p>{advice}'
        f"{table if question.plots else ''}</div>\n<div>{beside}</div></div>\n</section>"
    )


def _evidence(question: QuestionSection) -> str:
    table = _table(question.figures, "evidence") if question.figures else ""
    if more := question.more_figures:
        table += (
            f'<details class="more"><summary>{len(more.rows)} more figures</summary>'
            f"{_table(more, 'evidence')}</details>"
        )
    return table


def _appendix(appendix: Appendix) -> str:
    blocks = _lines(_block(block) for block in appendix.blocks)
    return (
        f'<section id="{escape(appendix.anchor)}">\n<h2>{escape(appendix.title)}</h2>\n'
        f"{blocks}\n</section>"
    )


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case TextTable():
            return _table(block)
        case Chart() | Gantt():
            return _plot(block)
        case Histogram():
            return _plot(block, block.note)
        case Samples(title, samples):
            items = "".join(_sample(sample) for sample in samples)
            return f"<h3>{escape(title)}</h3>\n<ol class='samples'>{items}</ol>"
        case Verbatim(title, text):
            return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def _table(table: TextTable, kind: str = "") -> str:
    kinds = [' class="number"' if align == "r" else "" for align in table.alignment]

    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True)
        )

    body = _lines(f"<tr>{row(cells, 'td')}</tr>" for cells in table.rows)
    head = f"<thead><tr>{row(table.header, 'th')}</tr></thead>"
    return f'<div class="wide"><table class="{kind}">{head}\n<tbody>{body}</tbody></table></div>'


def _plot(plot: Plot, note: str = "") -> str:
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    return (
        f"<figure><h3>{escape(plot.title)}</h3>"
        f'<div class="plot"></div><script type="application/json">{figure_json(plot)}</script>'
        "<noscript>This plot needs JavaScript; report.md shows its course, and report.json "
        f"holds its points.</noscript>{caption}</figure>"
    )


def _sample(sample: Sample) -> str:
    if sample.equals_reference:
        judged = '<p class="same">✓ word for word the reference</p>'
    else:
        judged = f'<p class="reference">{escape(sample.reference)}</p>'
    return (
        f'<li><p class="source">{escape(sample.source)}</p>'
        f"<p>{escape(sample.translation)}</p>{judged}</li>"
    )
