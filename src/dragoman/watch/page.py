"""A watched run comes in, the parts of its page go out, as HTML in the look of the report. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any

from dragoman.diagnosis.findings import HEALTH_SIGNS, HEALTH_WORDS
from dragoman.diagnosis.phrasing import count, loss, money, scientific, score, seconds, wall_time
from dragoman.report.content import HostCurve, Report
from dragoman.report.document import Chart, Document, Line, StackedBars
from dragoman.report.sections import attempts, document_of, evaluations, hosts
from dragoman.report.sections.attempts import STATE_HEALTH
from dragoman.report.sections.steps import PART_NAMES
from dragoman.report.webpage import (
    appendix_html,
    blocks_html,
    cards_html,
    code_html,
    question_html,
    to_do_html,
)
from dragoman.watch.content import Happening, Now, RankNow, VerdictChange, Watched

HAPPENINGS_SHOWN = 12
RANKS_SHOWN = 64
APPENDICES_LEFT_OUT = {"Translations"}
"""They stand further up."""

Parts = dict[str, str]
"""Name of a part -> its HTML, in the order of the page; empty: nothing is shown."""


class PageWriter:
    """Writes the parts of one run's page; what has not changed since the last time is not written
    again."""

    def __init__(self, anchor_prefix: str) -> None:
        self._prefix = anchor_prefix
        self._written: dict[str, tuple[Any, Parts]] = {}

    def parts(self, watched: Watched) -> Parts:
        now, report, prefix = watched.now, watched.report, self._prefix
        once = self._once
        # The order is that in which they are read.
        return {
            **once("state", [now.model_copy(update=_DRAWN_APART)], lambda: state_html(now)),
            **once("cards", [report, watched.changes], lambda: answers_html(watched, prefix)),
            **once("recent", [now.recent, now.hosts], lambda: _plots(recent_charts(now))),
            **once("ranks", [now.ranks], lambda: ranks_html(now.ranks)),
            **once("hosts", [now.recent, now.hosts], lambda: hosts_html(now)),
            **once("happenings", [now.happenings], lambda: happenings_html(now.happenings)),
            **self._several("report", [report], lambda: report_parts(report, prefix)),
        }

    def _once(self, name: str, made_of: Sequence[Any], write: Callable[[], str]) -> Parts:
        return self._several(name, made_of, lambda: {name: write()})

    def _several(self, name: str, made_of: Sequence[Any], write: Callable[[], Parts]) -> Parts:
        before = self._written.get(name)
        if before is None or not _is_same(before[0], made_of):
            before = made_of, write()
            self._written[name] = before
        return before[1]


_DRAWN_APART = {"at": 0.0, "recent": None, "hosts": None, "happenings": None, "ranks": None}


def _is_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    # A report is a new one whenever it is renewed: comparing its thousands of points says no more.
    return all(
        a is b or (not isinstance(a, Report) and a == b) for a, b in zip(one, other, strict=True)
    )


def state_html(now: Now) -> str:
    health = STATE_HEALTH[now.state]
    trouble = ""
    if now.trouble:
        trouble = f'<p class="banner poor" role="alert">{escape(now.trouble)}</p>'
    return (
        f'<div class="state {health}" data-state="{escape(now.state)}" '
        f'data-title="{escape(_tab_title(now))}">\n'
        f'<h2>{escape(now.name)} <span class="pill">{HEALTH_SIGNS[health]} {escape(now.state)}'
        f'</span></h2>\n<p class="quiet">{escape(now.run)}</p>\n'
        f'<p class="sentence">{escape(now.sentence)}</p>\n{trouble}{_progress(now)}'
        f'<dl class="tiles">{"".join(_tiles(now))}</dl></div>'
    )


def _tab_title(now: Now) -> str:
    share = f"{100 * now.step // now.planned_steps} % " if now.planned_steps else ""
    return f"{share}{now.name}: {now.state}"


def _progress(now: Now) -> str:
    if not now.planned_steps:
        return ""
    done = min(now.step, now.planned_steps)
    # Without HTML's progress element: a browser that is asked to draw it in other colors moves it.
    share = 100 * done / now.planned_steps
    return (
        '<svg class="progress" viewBox="0 0 100 1" preserveAspectRatio="none" role="progressbar" '
        f'aria-label="Steps of {escape(now.name)}" aria-valuemin="0" '
        f'aria-valuemax="{now.planned_steps}" aria-valuenow="{done}">'
        f'<rect class="all" width="100" height="1"/>'
        f'<rect class="done" width="{share:.2f}" height="1"/></svg>'
    )


def _tiles(now: Now) -> Iterator[str]:
    of = f"of {count(now.planned_steps)}" if now.planned_steps else ""
    epoch = "" if now.epoch is None else f"epoch {now.epoch:.2f}"
    yield _tile("Step", count(now.step), ", ".join(filter(None, (of, epoch))))
    if now.left_s is not None:
        interval = ""
        if now.left_low_s is not None and now.left_high_s is not None:
            interval = f"{wall_time(now.left_low_s)} to {wall_time(now.left_high_s)}"
        yield _tile("Time left", wall_time(now.left_s), interval)
    if now.spent is not None:
        yield _tile("Spent so far", money(now.spent, now.currency))
    yield _tile("Training loss", loss(now.loss))
    at_step = "" if now.bleu_step is None else f"at step {count(now.bleu_step)}"
    yield _tile("BLEU", score(now.bleu), at_step)
    yield _tile("Learning rate", _known(now.learning_rate, scientific))
    yield _tile("Tokens a second", _known(now.tokens_per_s, lambda rate: f"{rate:,.0f}"))
    if now.ranks:
        slowest = max((rank.step_s or 0.0 for rank in now.ranks), default=0.0)
        yield _tile("A step takes", seconds(slowest) if slowest else "-")
    expected = f"of {count(now.ranks_expected)}" if now.ranks_expected else ""
    attempt = f"attempt {now.attempt}" if now.attempt > 1 else ""
    yield _tile("Workers", count(len(now.ranks)), ", ".join(filter(None, (expected, attempt))))


def _known(value: float | None, written: Callable[[float], str]) -> str:
    return "-" if value is None else written(value)


def _tile(name: str, value: str, more: str = "") -> str:
    """Returns a term of a list of definitions; an empty note keeps its line, so nothing jumps."""
    return (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        f'<dd class="more">{escape(more)}</dd></div>'
    )


def answers_html(watched: Watched, anchor_prefix: str) -> str:
    if watched.report is None:
        # Where it cannot be read, the banner says why.
        return "" if watched.now.trouble else '<p class="quiet">The answers are worked out …</p>'
    document = document_of(watched.report)
    # A figure is another one all the time.
    notes = {c.key: "" if c.health == "fact" else _since(c) for c in watched.changes}
    return (
        f"{cards_html(document.questions, anchor_prefix, notes)}\n"
        f"{to_do_html(document.to_do, anchor_prefix)}"
    )


def _since(change: VerdictChange) -> str:
    if change.before:
        return f"since {clock(change.at)}; before: {change.before}"
    return f"since {clock(change.at)} or longer"


def recent_charts(now: Now) -> list[Chart]:
    recent = now.recent
    if not recent.at:
        return []
    span = _span(now)
    return [
        Chart(
            "Training loss, last minutes",
            "loss",
            ".3f",
            [Line("loss", recent.at, recent.loss, color=0)],
            axis="time",
            shows_zero=False,
            axis_range=span,
        ),
        Chart(
            "Time of a step, last minutes",
            "seconds",
            ".3f",
            [Line("step", recent.at, recent.step_s, color=1)],
            axis="time",
            axis_range=span,
        ),
    ]


def ranks_html(ranks: Sequence[RankNow]) -> str:
    timed = [rank for rank in ranks if rank.parts_s]
    if not timed:
        return ""
    names = list(dict.fromkeys(part for rank in timed for part in rank.parts_s))
    shown = timed[:RANKS_SHOWN]
    bars = StackedBars(
        "Where the time of a step goes, by worker",
        "seconds, mean of the last steps",
        ".3f",
        [f"rank {rank.rank}, {rank.host}" for rank in shown],
        [(PART_NAMES.get(name, name), [r.parts_s.get(name) for r in shown]) for name in names],
    )
    more = len(timed) - len(shown)
    note = f'<p class="quiet">{count(more, "more worker")} not shown.</p>' if more else ""
    return f"{blocks_html([bars])}{note}"


def hosts_html(now: Now) -> str:
    span = _span(now)
    makers = (
        hosts.cpu_utilization,
        hosts.memory,
        hosts.gpu_utilization,
        hosts.network_throughput,
    )
    charts = [chart for chart in (make(now.hosts) for make in makers) if chart]
    return _plots([replace(chart, axis_range=span) for chart in charts])


def _plots(charts: Sequence[Chart]) -> str:
    return f'<div class="plots">{blocks_html(charts)}</div>' if charts else ""


def _span(now: Now) -> tuple[float, float] | None:
    """Returns the time that the charts of the last minutes have in common."""
    at = [*now.recent.at, *(moment for curve in now.hosts for moment in _ends(curve))]
    return (min(at), max(at)) if at and min(at) < max(at) else None


def _ends(curve: HostCurve) -> list[float]:
    return [curve.at[0], curve.at[-1]] if curve.at else []


def happenings_html(happenings: Sequence[Happening]) -> str:
    if not happenings:
        return ""
    rows = "".join(
        f'<li class="{each.health}"><span class="sign" title="{HEALTH_WORDS[each.health]}">'
        f"{HEALTH_SIGNS[each.health]}</span> <time>{clock(each.at)}</time> {escape(each.text)}</li>"
        for each in reversed(happenings[-HAPPENINGS_SHOWN:])
    )
    return f'<h3>What happened last</h3>\n<ol class="happenings">{rows}</ol>'


def report_parts(report: Report | None, anchor_prefix: str) -> Parts:
    """Returns what changes with the report: where nothing of it is new, the texts are the same."""
    if report is None:
        return {}
    document = document_of(report)
    gantt = attempts.plot(report)
    samples = blocks_html(evaluations.translations(report)) if report.translations else ""
    parts = {
        "time line": blocks_html([gantt]) if gantt else "",
        "samples": f"<section><h2>Translations</h2>{samples}</section>" if samples else "",
        "command": _going_on(document),
    }
    for question in (*document.questions, *document.also):
        parts[f"question {question.answer.key}"] = question_html(question, anchor_prefix)
    for appendix in document.appendices:
        if appendix.title not in APPENDICES_LEFT_OUT:
            parts[f"appendix {appendix.anchor}"] = appendix_html(appendix, anchor_prefix)
    return parts


def _going_on(document: Document) -> str:
    if not document.command:
        return ""
    return f"<section><h2>How to go on</h2>{code_html(document.command)}</section>"


def clock(at: float) -> str:
    """14:05:09, in UTC as the axes are."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
