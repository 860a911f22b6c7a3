"""One screen of text: what is known of some runs comes in, as many lines as fit go out. Pure.

Text that comes from a run's data is shown as it is: it is never read as markup, and what would
steer a terminal is taken out of it.
"""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from rich.text import Text

from dragoman.console import duration
from dragoman.diagnosis.findings import HEALTH_SIGNS, Health
from dragoman.diagnosis.phrasing import count, money, percent, rate, scientific, seconds
from dragoman.diagnosis.questions import question_of
from dragoman.report.content import Answer, Points, StateName
from dragoman.report.curves import bins_of
from dragoman.watch.content import Happening, Now, RankNow, Watched

LEAST_COLUMN = 78
"""Runs stand side by side where each has this much room."""
TWO_COLUMNS = 132
"""A run that has this much room shows its machines beside its answers."""
LABELED = 70
LABEL = 9
ANSWER = 35
SENTENCES = 70
"""An answer that has this much room beside the machines stands with its sentence."""
MOST_SPARKS = 60

_SPARKS = "▁▂▃▄▅▆▇█"
_HEALTH_STYLES: dict[Health, str] = {
    "good": "green",
    "watch": "yellow",
    "poor": "bold red",
    "open": "dim",
    "fact": "cyan",
}
_STATES: dict[StateName, tuple[str, str]] = {
    "preparing": ("…", "dim"),
    "training": ("●", "bold cyan"),
    "broken off": ("✕", "bold red"),
    "preempted": ("▲", "bold yellow"),
    "failed": ("✕", "bold red"),
    "finished": ("✓", "bold green"),
}
_PART_STYLES = {
    "data": "black on yellow",
    "forward": "black on cyan",
    "backward": "white on blue",
    "communication": "white on magenta",
    "agreement": "black on bright_magenta",
    "checkpoint": "black on bright_yellow",
    "optimizer": "black on green",
}
_OTHER_PART = "black on bright_black"
_ASCII = str.maketrans(_SPARKS + "━─│▏●✓✕▲•…↑↓", ".:-=+*##=-||*+x!*~^v")


class Section(NamedTuple):
    """Lines under one name."""

    label: str
    lines: Sequence[Text]
    least: int
    """So many are shown before any section gets more than its least."""


def screen_of(
    every: Sequence[Watched], width: int, height: int | None, is_ascii: bool = False
) -> list[Text]:
    """Returns the lines of a screen, each exactly `width` cells wide; `height` None: all there is.

    `is_ascii`: for a terminal that knows no other characters."""
    columns = max(1, min(len(every), width // LEAST_COLUMN))
    rows = [every[begin : begin + columns] for begin in range(0, len(every), columns)]
    lines: list[Text] = []
    for place, row in enumerate(rows):
        own = None
        if height is not None:
            own = height * (place + 1) // len(rows) - height * place // len(rows)
        lines += _row(row, width, own, is_last=place == len(rows) - 1)
    if height is not None:
        lines = [*lines, *(Text(" " * width) for _ in range(height - len(lines)))][:height]
    for line in lines:
        line.no_wrap = True
        if is_ascii:
            line.plain = _to_ascii(line.plain)
    return lines


def shown(text: str) -> str:
    """Returns a text in one line without what a terminal would obey: control characters, and those
    that turn the direction of writing."""
    return "".join(
        character
        if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
        else " "
        if character in "\t\r\n\u2028\u2029"
        else "�"
        for character in text
    )


def sparkline(values: Points, width: int) -> str:
    """Returns a line of bars as high as the values are; a space where there is none. The highest
    of many may be cut off, so that one of them does not flatten all others."""
    if width < 1 or all(value is None for value in values):
        return ""
    bins = bins_of(len(values), width)
    means = bins.means(np.array([math.nan if value is None else value for value in values]))
    known = sorted(mean for mean in means.tolist() if math.isfinite(mean))
    low, high = known[0], known[-1 - len(known) // 20]
    drawn = ""
    for mean in means.tolist():
        share = (mean - low) / (high - low) if high > low else 0.0
        place = min(len(_SPARKS) - 1, int(share * len(_SPARKS))) if math.isfinite(mean) else -1
        drawn += " " if place < 0 else _SPARKS[place]
    return drawn


def _row(row: Sequence[Watched], width: int, height: int | None, is_last: bool) -> list[Text]:
    """Runs side by side; a rule below parts them from the next row."""
    rule = not is_last and (height is None or height > 6)
    inner = None if height is None else height - rule
    each = (width - (len(row) - 1)) // len(row)
    widths = [*([each] * (len(row) - 1)), width - (each + 1) * (len(row) - 1)]
    blocks = [_run(watched, own, inner) for watched, own in zip(row, widths, strict=True)]
    tallest = max(len(block) for block in blocks) if inner is None else inner
    lines = []
    for number in range(tallest):
        line = Text()
        for place, (block, own) in enumerate(zip(blocks, widths, strict=True)):
            if place:
                line.append("│", "dim")
            line.append_text(_fit(block[number] if number < len(block) else Text(), own))
        lines.append(line)
    return [*lines, _fit(Text("─" * width, "dim"), width)] if rule else lines


def _run(watched: Watched, width: int, height: int | None) -> list[Text]:
    """Returns at most `height` lines about one run."""
    now = watched.now
    head = [_title(now, width)]
    if now.trouble:
        head.append(_joined(("✕ ", "bold red"), (shown(now.trouble), "red")))
    if now.state != "training":
        head.append(Text(shown(now.sentence)))
    head += [_progress(now, width), _figures(now)]
    if height is not None and height <= len(head):
        return head[:height]
    left = None if height is None else height - len(head)
    if width >= TWO_COLUMNS and (left is None or left >= 12):
        half = (width - 3) * 9 // 20
        rest = width - 3 - half
        machines = _filled(_machines(now, watched, half - LABEL), half, left, LABEL)
        answers = _filled(_verdicts(watched, rest - LABEL, SENTENCES), rest, left, LABEL)
        return head + _beside(machines, half, answers, rest)
    label = LABEL if width >= LABELED else 0
    sections = [*_machines(now, watched, width - label), *_verdicts(watched, width - label)]
    return head + _filled(sections, width, left, label)


def _title(now: Now, width: int) -> Text:
    sign, style = _STATES[now.state]
    state = now.state
    silent = [rank for rank in now.ranks if now.state == "training" and rank.silent_s >= 10]
    line = _joined((f"{sign} ", style), (shown(now.name), "bold"), (f"  {state}", style))
    if now.attempt > 1:
        line.append(f"  attempt {now.attempt}")
    if now.ranks_expected > 1:
        hosts = len({rank.host for rank in now.ranks})
        on = f" on {count(hosts, 'host')}" if hosts > 1 else ""
        line.append(f"  {now.ranks_expected} ranks{on}", "dim")
    if silent and len(silent) == len(now.ranks):
        line.append(f"  silent for {duration(min(r.silent_s for r in silent))}", "yellow")
    clock = _clock(now.at, now.at)
    if width - line.cell_len > len(clock) + 2:
        line.pad_right(width - line.cell_len - len(clock))
        line.append(clock, "dim")
    return line


def _progress(now: Now, width: int) -> Text:
    words = []
    if now.planned_steps:
        done = min(1.0, now.step / now.planned_steps)
        words.append(f"{math.floor(100 * done)} %")
    if now.left_s is not None:
        left = f"{duration(now.left_s)} left"
        if now.left_low_s is not None and now.left_high_s is not None:
            left += f" ({duration(now.left_low_s)} to {duration(now.left_high_s)})"
        words.append(left)
    if now.spent is not None:
        words.append(f"{money(now.spent, now.currency)} so far")
    step = f"step {count(now.step)}"
    if now.planned_steps:
        step += f" of {count(now.planned_steps)}"
    text = "  ".join([step, *words])
    line = Text(text)
    room = min(60, width - len(text) - 2)
    if now.planned_steps and room >= 10:
        filled = round(room * min(1.0, now.step / now.planned_steps))
        style = "green" if now.state in ("training", "finished") else "yellow"
        line = _joined(("━" * filled, style), ("─" * (room - filled), "dim"), (f"  {text}", ""))
    return line


def _figures(now: Now) -> Text:
    found = [("loss", None if now.loss is None else f"{now.loss:.3f}")]
    if now.bleu is not None:
        at = "" if now.bleu_step is None else f" at step {count(now.bleu_step)}"
        found.append(("BLEU", f"{now.bleu:.1f}{at}"))
    if now.learning_rate is not None:
        found.append(("learning rate", scientific(now.learning_rate)))
    if now.tokens_per_s is not None:
        found.append(("tokens/s", f"{now.tokens_per_s:,.0f}"))
    if now.ranks and now.ranks[0].step_s is not None:
        found.append(("a step", seconds(now.ranks[0].step_s)))
    if now.epoch is not None:
        found.append(("epoch", f"{now.epoch:.2f}"))
    line = Text()
    for name, value in found:
        if value is not None:
            line.append_text(_joined((f"{name} ", "dim"), (f"{value}   ", "bold")))
    return line


def _machines(now: Now, watched: Watched, width: int) -> Iterator[Section]:
    curves = _loss_lines(now, watched, width)
    yield Section("loss", curves, len(curves[:1]))
    ranks = [_rank_line(rank, now, width) for rank in _slowest_first(now)]
    yield Section("workers", ranks, min(2, len(ranks)))
    hosts = list(_host_lines(now, width))
    yield Section("hosts", hosts, min(2, len(hosts)))


def _verdicts(watched: Watched, width: int, with_sentences: int = 100) -> Iterator[Section]:
    """`with_sentences`: from this width on, one answer stands on a line, with its sentence."""
    answers = _answer_lines(watched, width, with_sentences)
    yield Section("answers", answers, min(6, len(answers)))
    events = [_happening_line(each, watched.now.at) for each in reversed(watched.now.happenings)]
    yield Section("events", events, min(3, len(events)))


def _loss_lines(now: Now, watched: Watched, width: int) -> list[Text]:
    lines = []
    run = watched.report.curves.training_loss if watched.report else []
    for values, what in ((now.recent.loss, _span(now)), (run, "whole run")):
        known = [value for value in values if value is not None]
        if len(known) < 3:
            continue
        ends = f"{known[0]:.2f} to {known[-1]:.2f}, {what}"
        drawn = sparkline(values, min(MOST_SPARKS, width - len(ends) - 2))
        lines.append(_joined((drawn, "cyan"), (f"  {ends}", "dim")))
    return lines


def _span(now: Now) -> str:
    return (
        f"last {duration(max(1.0, now.recent.at[-1] - now.recent.at[0]))}" if now.recent.at else ""
    )


def _slowest_first(now: Now) -> list[RankNow]:
    """In order of rank, as long as they are few; of many, those that matter come first."""
    if len(now.ranks) <= 4:
        return now.ranks
    return sorted(now.ranks, key=lambda rank: (-rank.is_silent, -(rank.step_s or 0.0)))


def _rank_line(rank: RankNow, now: Now, width: int) -> Text:
    name = f"{rank.rank} {shown(rank.host)}"[:18]
    longest = min(18, max(len(f"{r.rank} {shown(r.host)}") for r in now.ranks))
    line = Text(f"{name:<{longest}} ")
    if now.state == "training" and rank.is_silent:
        line.append(f"silent for {duration(rank.silent_s)}", "bold red")
        return line
    if rank.step_s is None:
        return line + Text("no step yet", "dim")
    line.append(f"{seconds(rank.step_s):>7} ")
    longest_s = max((r.step_s or 0.0 for r in now.ranks), default=0.0)
    room = min(80, width - line.cell_len - 1)
    if longest_s and room >= 8:
        line.append_text(_stacked(rank, room * rank.step_s / longest_s))
    return line


def _stacked(rank: RankNow, width: float) -> Text:
    """Returns a bar of the parts of a step, each with its name in it as far as it fits."""
    line = Text()
    total_s = math.fsum(rank.parts_s.values())
    passed_s, begin = 0.0, 0
    for part, spent_s in rank.parts_s.items():
        passed_s += spent_s
        end = round(width * passed_s / total_s) if total_s else 0
        cells = end - begin
        begin = end
        if cells:
            words = shown(part)
            share = f"{words} {percent(spent_s / total_s)}"
            inside = (
                share
                if len(share) < cells - 1
                else words
                if len(words) < cells
                else words[: cells - 1]
            )
            line.append(("▏" + inside)[:cells].ljust(cells), _PART_STYLES.get(part, _OTHER_PART))
    return line


def _host_lines(now: Now, width: int) -> Iterator[Text]:
    by_host: dict[str, dict[str, Points]] = {}
    for curve in now.hosts:
        if curve.mean:
            by_host.setdefault(curve.host, {})[curve.sensor] = curve.mean
    longest = min(16, max((len(shown(host)) for host in by_host), default=0))
    for host, sensors in by_host.items():
        line = Text(f"{shown(host)[:16]:<{longest}} ")
        for name, values in sensors.items():
            last = next((value for value in reversed(values) if value is not None), None)
            if last is None:
                continue
            words, style = _sensor_words(name, last)
            spark = sparkline(values[-60:], 8) if width >= 100 else ""
            line.append_text(_joined((f" {words}", style), (f" {spark}" if spark else " ", "cyan")))
        yield line


def _sensor_words(name: str, value: float) -> tuple[str, str]:
    match name:
        case "cpu":
            return f"CPU {value:3.0f} %", ""
        case "memory":
            return f"memory {value:3.0f} %", "bold red" if value > 92 else ""
        case "network sent":
            return f"↑ {rate(value):>9}", ""
        case "network received":
            return f"↓ {rate(value):>9}", ""
    return f"{shown(name).removesuffix(' utilization').replace('gpu', 'GPU')} {value:3.0f} %", ""


def _answer_lines(watched: Watched, width: int, with_sentences: int) -> list[Text]:
    report = watched.report
    if report is None:
        return [Text("the report is being made" if not watched.now.trouble else "-", "dim")]
    changed = {change.key: change.at for change in watched.changes if change.before}
    order: list[Health] = ["poor", "watch", "good", "open", "fact"]
    also = [answer for answer in report.also if answer.health in ("poor", "watch")]
    answers = sorted([*also, *report.answers], key=lambda answer: order.index(answer.health))
    at = watched.now.at
    columns = 1 if width >= with_sentences else max(1, width // ANSWER)
    each = [
        _answer_line(answer, changed.get(answer.key), at, width // columns, columns == 1)
        for answer in answers
    ]
    down = math.ceil(len(each) / columns)
    lines = []
    for row in range(down):
        line = Text()
        for column in each[row::down]:
            line.append_text(column)
        lines.append(line)
    return lines


def _answer_line(
    answer: Answer, changed_at: float | None, now: float, width: int, with_sentence: bool
) -> Text:
    style = _HEALTH_STYLES[answer.health]
    line = _joined(
        (f"{HEALTH_SIGNS[answer.health]} ", style),
        (f"{question_of(answer.key).title:<18}", "dim"),
        (shown(answer.verdict), style),
    )
    if changed_at is not None:
        line.append(f" since {_clock(changed_at, now)}", "dim")
    if with_sentence and answer.health in ("poor", "watch", "good"):
        line.append(f"  {shown(answer.plain or answer.sentence)}", "dim")
    return _fit(line, width - 1) + Text(" ")


def _happening_line(happening: Happening, now: float) -> Text:
    style = _HEALTH_STYLES[happening.health]
    return _joined(
        (f"{_clock(happening.at, now)} ", "dim"),
        (f"{HEALTH_SIGNS[happening.health]} ", style),
        (shown(happening.text), style if happening.health in ("poor", "watch") else ""),
    )


def _filled(sections: Iterable[Section], width: int, height: int | None, label: int) -> list[Text]:
    """Returns as many lines of each section as there is room for: first the least of each, the
    answers and events before the machines, then more."""
    every = [section for section in sections if section.lines]
    counts = [len(section.lines) for section in every]
    if height is not None and sum(counts) > height:
        by_importance = sorted(range(len(every)), key=lambda n: _IMPORTANCE.index(every[n].label))
        counts = [0] * len(every)
        for wanted in (lambda s: 1, lambda s: s.least, lambda s: len(s.lines)):
            for number in by_importance:
                room = height - sum(counts)
                more = wanted(every[number]) - counts[number]
                counts[number] += max(0, min(room, more))
    lines = []
    for section, shown_lines in zip(every, counts, strict=True):
        for number, line in enumerate(section.lines[:shown_lines]):
            name = section.label if number == 0 else ""
            left_out = len(section.lines) - shown_lines
            prefix = Text(f"{name:<{label}}"[:label], "dim")
            whole = prefix + line
            if left_out and number == shown_lines - 1 and section.label != "events":
                whole = _with_end(_fit(whole, width), f" +{left_out} ", width)
            lines.append(whole)
    return lines


_IMPORTANCE = ["answers", "events", "loss", "workers", "hosts"]


def _with_end(line: Text, words: str, width: int) -> Text:
    line.truncate(width - len(words))
    line.append(words, "dim reverse")
    return line


def _beside(
    left: Sequence[Text], left_width: int, right: Sequence[Text], right_width: int
) -> list[Text]:
    lines = []
    for number in range(max(len(left), len(right))):
        line = _fit(left[number] if number < len(left) else Text(), left_width)
        line.append(" │ ", "dim")
        line.append_text(_fit(right[number] if number < len(right) else Text(), right_width))
        lines.append(line)
    return lines


def _fit(line: Text, width: int) -> Text:
    fitted = line.copy()
    fitted.truncate(width, overflow="ellipsis", pad=True)
    return fitted


def _joined(*pieces: tuple[str, str]) -> Text:
    line = Text()
    for text, style in pieces:
        line.append(text, style)
    return line


def _clock(at: float, now: float) -> str:
    """Returns the local time of day; of another day, its date too."""
    moment = datetime.fromtimestamp(at)
    is_today = moment.date() == datetime.fromtimestamp(now).date()
    return moment.strftime("%H:%M:%S" if is_today else "%m-%d %H:%M")


def _to_ascii(text: str) -> str:
    translated = text.translate(_ASCII)
    return "".join(c if c.isascii() else "?" for c in translated)
