"""report.html: a document comes in, one page goes out that needs no network and no server.

All of it is readable without JavaScript, but for the plots.
"""

import html
from importlib import resources

import plotly.offline

from dragoman.report.document import (
    Block,
    Chart,
    Document,
    KeyFigures,
    Paragraph,
    Samples,
    Section,
    Shares,
    Table,
    Verbatim,
)
from dragoman.report.facts import Sample
from dragoman.report.plots import figure_json
from dragoman.report.wording import percent

# The browser itself then refuses whatever the page, or the plotting library, might try to load.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def to_html(document: Document) -> str:
    title = html.escape(document.title)
    links = "".join(
        f'<a href="#{_anchor(section)}">{html.escape(section.title)}</a>'
        for section in document.sections
    )
    body = "\n".join(_section(section) for section in document.sections)
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
<p>{html.escape(document.subtitle)}</p>
<nav>{links}</nav>
</header>
<main>
{body}
</main>
<script>{plotly.offline.get_plotlyjs()}</script>
<script>
{_shipped("page.js")}</script>
</body>
</html>
"""


def _shipped(name: str) -> str:
    return resources.files("dragoman.report").joinpath(name).read_text(encoding="utf-8")


def _anchor(section: Section) -> str:
    return section.title.lower().replace(" ", "-")


def _section(section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return (
        f'<section id="{_anchor(section)}">\n<h2>{html.escape(section.title)}</h2>\n'
        f"{blocks}\n</section>"
    )


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case KeyFigures(figures):
            cards = "".join(
                f"<div><dt>{html.escape(figure.label)}</dt><dd>{html.escape(figure.value)}</dd>"
                f"<dd>{html.escape(figure.note)}</dd></div>"
                for figure in figures
            )
            return f'<dl class="figures">{cards}</dl>'
        case Table():
            return _table(block)
        case Shares():
            return _shares(block)
        case Chart():
            return _chart(block)
        case Samples(title, samples):
            items = "".join(_sample(sample) for sample in samples)
            return f"<h3>{html.escape(title)}</h3>\n<ol class='samples'>{items}</ol>"
        case Verbatim(title, text):
            return (
                f"<details><summary>{html.escape(title)}</summary>"
                f"<pre>{html.escape(text)}</pre></details>"
            )


def _table(table: Table) -> str:
    kinds = ['class="number"' if align == "r" else "" for align in table.alignment]

    def row(cells: list[str], tag: str) -> str:
        return "".join(
            f"<{tag} {kind}>{html.escape(cell)}</{tag}>"
            for cell, kind in zip(cells, kinds, strict=True)
        )

    body = "\n".join(f"<tr>{row(list(cells), 'td')}</tr>" for cells in table.rows)
    return (
        f'<div class="wide"><table><thead><tr>{row(list(table.header), "th")}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _shares(shares: Shares) -> str:
    rows = "\n".join(
        f"<tr><td>{html.escape(part.label)}</td>"
        f'<td class="number">{html.escape(part.value)}</td>'
        f'<td class="number">{percent(part.share)}</td>'
        f'<td class="bar"><i style="width:{100 * part.share:.1f}%"></i></td></tr>'
        for part in shares.parts
    )
    return (
        f'<h3>{html.escape(shares.title)}</h3>\n<table class="shares"><tbody>{rows}</tbody></table>'
    )


def _chart(chart: Chart) -> str:
    return (
        f"<figure><h3>{html.escape(chart.title)}</h3>"
        f'<div class="plot"></div><script type="application/json">{figure_json(chart)}</script>'
        "<noscript>This plot needs JavaScript; report.md shows its course, and report.json "
        "holds its points.</noscript></figure>"
    )


def _sample(sample: Sample) -> str:
    if sample.equals_reference:
        judged = '<p class="same">✓ word for word the reference</p>'
    else:
        judged = f'<p class="reference">{html.escape(sample.reference)}</p>'
    return (
        f'<li><p class="source">{html.escape(sample.source)}</p>'
        f"<p>{html.escape(sample.translation)}</p>{judged}</li>"
    )
