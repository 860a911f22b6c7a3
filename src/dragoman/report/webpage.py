"""report.html: a document comes in, one page goes out that needs no network and no server.

All of it is readable without JavaScript, but for the plots.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from types import MappingProxyType

import plotly.offline

from dragoman.diagnosis.findings import HEALTH_SIGNS, HEALTH_WORDS
from dragoman.report.content import AdviceContent, Answer, Sample
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
    StackedBars,
    TextTable,
    ToDo,
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
    also = [question_html(question) for question in document.also]
    head = f"""<h1>{title}</h1>
<p>{escape(document.subtitle)}</p>
<p class="lead">{escape(document.lead)}</p>
{code_html(document.command)}"""
    body = f"""{cards_html(document.questions)}
{to_do_html(document.to_do)}
<nav>{_links(document)}</nav>
{_lines(question_html(question) for question in document.questions)}
{_group("Also found", also) if also else ""}
{_group("The run itself", [appendix_html(appendix) for appendix in document.appendices])}"""
    return page_html(document.title, head, body)


def page_html(title: str, head: str, body: str) -> str:
    """Returns a whole page in the look of the report, from a title and two pieces of HTML."""
    # The text comes first and the library, 5 MB of it, last: the page can be read at once.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{shipped("page.css")}</style>
</head>
<body>
<header>
{head}
</header>
<main>
{body}
</main>
<script>{plotly.offline.get_plotlyjs()}</script>
<script>
{shipped("page.js")}</script>
</body>
</html>
"""


def shipped(name: str) -> str:
    """Returns one of the files that give the page its look and its plots."""
    return resources.files("dragoman.report").joinpath(name).read_text(encoding="utf-8")


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _group(title: str, parts: Sequence[str]) -> str:
    return f'<h2 class="group">{escape(title)}</h2>\n{_lines(parts)}'


def _links(document: Document) -> str:
    found = [(question.answer.key, question.title) for question in document.also]
    found += [(appendix.anchor, appendix.title) for appendix in document.appendices]
    return "".join(f'<a href="#{escape(anchor)}">{escape(name)}</a>' for anchor, name in found)


def cards_html(
    questions: Sequence[QuestionSection],
    anchor_prefix: str = "",
    notes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """`notes`: key of a question -> what else its card says.

    `anchor_prefix` tells the sections of several runs on one page apart, here and below.
    """
    cards = (_card(each, anchor_prefix, notes.get(each.answer.key, "")) for each in questions)
    return f'<ol class="cards">\n{_lines(cards)}\n</ol>'


def _card(question: QuestionSection, anchor_prefix: str, note: str) -> str:
    answer = question.answer
    more = f'<span class="how">{escape(note)}</span>' if note else ""
    return (
        f'<li><a class="card {answer.health}" href="#{escape(anchor_prefix + answer.key)}">'
        f'<span class="short">{escape(question.title)}</span>'
        f'<span class="verdict">{escape(answer.verdict)}</span>'
        f'<span class="how">{_sign(answer)}</span>'
        f'<span class="how">{escape(question.how_sure)}</span>{more}</a></li>'
    )


def _sign(answer: Answer) -> str:
    return f'<span class="sign">{HEALTH_SIGNS[answer.health]}</span> {HEALTH_WORDS[answer.health]}'


def to_do_html(to_do: Sequence[ToDo], anchor_prefix: str = "") -> str:
    if not to_do:
        return ""
    items = _lines(
        f'<li class="{item.section.answer.health}">'
        f'<a href="#{escape(anchor_prefix + item.section.answer.key)}">'
        f"{escape(item.section.title)}</a>: {_advice(item.advice)}</li>"
        for item in to_do
    )
    return f'<div class="todo"><h2>What to do, most pressing first</h2>\n<ol>{items}</ol></div>'


def _advice(advice: AdviceContent) -> str:
    saves = f' <span class="saves">{escape(advice.saves)}</span>' if advice.saves else ""
    code = code_html(advice.command, advice.is_recipe)
    if advice.recipe:
        code += f"or, in a recipe:{code_html(advice.recipe, is_recipe=True)}"
    return f"{escape(advice.text)}{saves}{code}"


def code_html(command: str, is_recipe: bool = False) -> str:
    """Returns what to type, or to write into the recipe; page.js adds a button that copies it."""
    if not command:
        return ""
    kind, label = ("recipe", "In the recipe") if is_recipe else ("shell", "In a shell")
    parts = " ".join(f"<span>{escape(part)}</span>" for part in re.split(" (?=--)", command))
    return f'<pre class="command {kind}" aria-label="{label}"><code>{parts}</code></pre>'


def question_html(question: QuestionSection, anchor_prefix: str = "") -> str:
    answer = question.answer
    number = f'<span class="number">{question.number}</span> ' if question.number else ""
    plain = f'<p class="plain">{escape(answer.plain)}</p>' if answer.plain else ""
    advice = _lines(f"<li>{_advice(advice)}</li>" for advice in answer.advice)
    if advice:
        advice = f'<div class="advice"><b>What to do</b>\n<ul>{advice}</ul></div>'
    table = _evidence(question)
    beside = blocks_html(question.plots) or table
    return (
        f'<section id="{escape(anchor_prefix + answer.key)}" class="{answer.health}">\n'
        f"<h2>{number}{escape(answer.question)}</h2>\n"
        f'<p class="said"><span class="pill">{HEALTH_SIGNS[answer.health]} '
        f"{escape(answer.verdict)}</span><small>{HEALTH_WORDS[answer.health]}, "
        f"{escape(question.how_sure)}</small></p>\n"
        f'{plain}<div class="answer"><div><p>{escape(answer.sentence)}</p>{advice}'
        f"{_words(question)}{table if question.plots else ''}</div>\n"
        f"<div>{beside}</div></div>\n</section>"
    )


def _words(question: QuestionSection) -> str:
    if not question.words:
        return ""
    explained = "; ".join(
        f"<dfn>{escape(word)}</dfn>: {escape(meaning)}" for word, meaning in question.words
    )
    return f'<p class="quiet words">{explained}.</p>'


def _evidence(question: QuestionSection) -> str:
    table = _table(question.figures, "evidence") if question.figures else ""
    if more := question.more_figures:
        table += (
            f'<details class="more"><summary>{len(more.rows)} more figures</summary>'
            f"{_table(more, 'evidence')}</details>"
        )
    return table


def appendix_html(appendix: Appendix, anchor_prefix: str = "") -> str:
    blocks = blocks_html(appendix.blocks)
    return (
        f'<section id="{escape(anchor_prefix + appendix.anchor)}">\n'
        f"<h2>{escape(appendix.title)}</h2>\n{blocks}\n</section>"
    )


def blocks_html(blocks: Iterable[Block]) -> str:
    return _lines(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case TextTable():
            return _table(block)
        case Chart() | StackedBars() | Gantt():
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
