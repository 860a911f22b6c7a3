"""When the run was alive, what broke it, and which other incidents were recorded."""

from collections.abc import Iterable

from dragoman.diagnosis.findings import Health
from dragoman.diagnosis.phrasing import count, instant, seconds
from dragoman.report.content import AttemptContent, Report, StateName
from dragoman.report.document import Block, Gantt, GanttBar, GanttMark, Paragraph, TextTable

INCIDENTS_SHOWN = 50
MARKS_SHOWN = 200

STATE_HEALTH: dict[StateName, Health] = {
    "preparing": "open",
    "training": "fact",
    "finished": "good",
    "preempted": "watch",
    "broken off": "poor",
    "failed": "poor",
}


def plot(report: Report) -> Gantt | None:
    if not report.attempts:
        return None
    bars = []
    for attempt in report.attempts:
        end_at = attempt.started_at + attempt.wall_s
        text = f"steps {_steps(attempt)}, {seconds(attempt.wall_s)}, {attempt.state}"
        health = STATE_HEALTH[attempt.state]
        bars.append(GanttBar(_row(attempt), attempt.started_at, end_at, text, health))
        if attempt.lost_s:
            text = f"{count(attempt.lost_steps, 'step')} had to be done again"
            begin_at = max(attempt.started_at, end_at - attempt.lost_s)
            bars.append(GanttBar(_row(attempt), begin_at, end_at, text, "open"))
    rows = {attempt.attempt: _row(attempt) for attempt in report.attempts}
    marks = [
        GanttMark(rows[fault.attempt], fault.at, f"{fault.kind}: {fault.what}")
        for fault in report.faults[:MARKS_SHOWN]
        if fault.attempt in rows
    ]
    return Gantt("Attempts, and what ended them", bars, marks)


def blocks(report: Report) -> Iterable[Block]:
    if report.attempts:
        yield TextTable(
            ["attempt", "started", "workers", "on", "steps", "wall time", "lost", "ended"],
            [
                [
                    str(attempt.attempt),
                    instant(attempt.started_at),
                    count(attempt.ranks),
                    f"{', '.join(attempt.hosts)} ({', '.join(attempt.devices)})",
                    _steps(attempt),
                    seconds(attempt.wall_s),
                    f"{count(attempt.lost_steps, 'step')}, {seconds(attempt.lost_s)}"
                    if attempt.lost_steps
                    else "nothing",
                    ": ".join(filter(None, (attempt.state, attempt.reason))),
                ]
                for attempt in report.attempts
            ],
            "rlrlrrll",
        )
    if report.skipped_updates:
        yield Paragraph(
            f"In {count(report.skipped_updates, 'step')} the gradients were not finite: the "
            "weights stayed as they were."
        )
    yield from _incidents(report)
    for sentence in report.unreadable:
        yield Paragraph(f"Not read for this report: {sentence}.")


def _incidents(report: Report) -> Iterable[Block]:
    if not report.troubles:
        yield Paragraph("No skipped update, failed save or the like was recorded.")
        return
    yield TextTable(
        ["trouble", "times", "first at step", "last at step"],
        [
            [
                incident.what,
                count(incident.times),
                count(incident.first_step),
                count(incident.last_step),
            ]
            for incident in report.troubles[:INCIDENTS_SHOWN]
        ],
        "lrrr",
    )
    if (more := len(report.troubles) - INCIDENTS_SHOWN) > 0:
        yield Paragraph(f"{count(more)} more are in report.json.")


def _row(attempt: AttemptContent) -> str:
    return f"attempt {attempt.attempt}"


def _steps(attempt: AttemptContent) -> str:
    if attempt.last_step < attempt.first_step:
        return "none"
    return f"{count(attempt.first_step)} to {count(attempt.last_step)}"
