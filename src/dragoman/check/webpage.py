"""A check as one page in the look of the report, without scripts: a result comes in."""

from collections.abc import Sequence
from html import escape
from importlib import resources

from dragoman.check.matrix import (
    HOST_HEADER,
    MOST_HOSTS,
    Cell,
    by_severity,
    host_row,
    matrix_of,
    slowest_ways,
    summary_of,
)
from dragoman.check.ports import Rates, rates_of
from dragoman.check.result import CheckResult, Finding, Verdict
from dragoman.diagnosis.findings import HEALTH_SIGNS, Health
from dragoman.diagnosis.phrasing import bit_rate, seconds

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
HEALTH: dict[Verdict, Health] = {"good": "good", "warning": "watch", "unfit": "poor"}
WORDS: dict[Verdict, str] = {"good": "good", "warning": "warning", "unfit": "unfit"}

# The share of the fastest way is in the text and, beside it, in the color, on either background.
STYLE = """
.verdicts { list-style: none; margin: 1.5rem 0 0; padding: 0; display: grid; gap: 0.6rem; }
.verdicts li {
  padding: 0.6rem 0.9rem; border-radius: 0.5rem; background: var(--card);
  border-left: 0.3rem solid var(--health);
}
.verdicts b { margin-right: 0.5rem; }
.verdicts p { margin: 0.15rem 0 0; max-width: 60rem; }
.verdicts .sign { margin-right: 0.4rem; }
.verdicts .good { padding: 0.35rem 0.9rem; }
.verdicts .good p { display: inline; }
.verdicts .good small { display: none; }
.matrix { width: auto; }
.matrix td, .matrix th { padding: 0.45rem 0.7rem; text-align: right; white-space: nowrap; border: 2px solid var(--back); min-width: 4.5rem; }
.matrix th { text-align: left; }
.matrix thead th { text-align: right; }
.matrix td.cell { background: color-mix(in srgb, var(--health) 26%, var(--back)); border-radius: 0.3rem; }
.matrix td small { display: block; color: var(--quiet); font-size: 0.75rem; }
"""  # noqa: E501


def to_html(result: CheckResult) -> str:
    rates = rates_of(result.transfers)
    trips = {(t.sender, t.receiver): t.round_trip_s for t in result.transfers}
    verdict = "fit" if result.is_fit else "unfit"
    title = f"Check: {verdict}" + (f" for {escape(result.recipe)}" if result.recipe else "")
    findings = "\n".join(_finding(finding) for finding in by_severity(result.findings))
    css = resources.files("dragoman.report").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{css}{STYLE}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{escape(result.checked_at)}, Dragoman {escape(result.dragoman)}</p>
<p class="lead">{escape(summary_of(result))}.</p>
</header>
<main>
<ul class="verdicts">
{findings}
</ul>
{_pairs(rates, trips, [host.name for host in result.hosts])}
{_collective(result)}
<section id="hosts">
<h2>Hosts</h2>
{_table(HOST_HEADER, [host_row(host) for host in result.hosts])}
</section>
</main>
</body>
</html>
"""


def _finding(finding: Finding) -> str:
    health = HEALTH[finding.verdict]
    return (
        f'<li class="{health}"><span class="sign">{HEALTH_SIGNS[health]}</span>'
        f"<b>{escape(finding.subject)}</b><small>{WORDS[finding.verdict]}</small>"
        f"<p>{escape(finding.sentence)}</p></li>"
    )


def _pairs(rates: Rates, trips: dict[tuple[str, str], float], hosts: Sequence[str]) -> str:
    if not rates:
        return ""
    if len({name for pair in rates for name in pair}) > MOST_HOSTS:
        ways = [(sender, to, bit_rate(rate)) for sender, to, rate in slowest_ways(rates)]
        return (
            '<section id="pairs"><h2>The slowest of all pairs</h2>'
            f"{_table(('from', 'to', 'bandwidth'), ways)}</section>"
        )
    matrix = matrix_of(rates, hosts)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in matrix.hosts)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(sender)}</th>'
        + "".join(
            _cell(cell, trips.get((sender, receiver)))
            for receiver, cell in zip(matrix.hosts, row, strict=True)
        )
        + "</tr>"
        for sender, row in zip(matrix.hosts, matrix.rows, strict=True)
    )
    return (
        f'<section id="pairs"><h2>Bandwidth in {matrix.unit}, from row to column</h2>\n'
        f'<div class="wide"><table class="matrix"><thead><tr><td></td>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>\n"
        '<p class="quiet">Payload over TCP while nobody else sends to or from the two, by one '
        "connection or several, whichever carried more; below it the round trip of a small "
        "message. ! and !! mark what is below 65 % and 50 % of the fastest.</p></section>"
    )


def _cell(cell: Cell, trip_s: float | None) -> str:
    if cell.share is None:
        return f"<td>{escape(cell.text)}</td>"
    health = {"": "good", "!": "watch", "!!": "poor"}[cell.mark]
    trip = f"<small>{escape(seconds(trip_s))}</small>" if trip_s is not None else ""
    return f'<td class="cell {health}">{escape(cell.text)} {escape(cell.mark)}{trip}</td>'


def _collective(result: CheckResult) -> str:
    if not result.collective:
        return ""
    done = result.collective
    return (
        f'<section id="all-reduce"><h2>All-reduce</h2><p>{done.elements:,} values over '
        f"{done.ranks} workers with {escape(done.backend)}: "
        f"{escape(seconds(min(done.seconds)))}; a single number: "
        f"{escape(seconds(done.latency_s))}.</p></section>"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>'
        "</div>"
    )
