"""How long steps took, where their time went, and what they sent meanwhile."""

from collections.abc import Iterable, Sequence

from dragoman.report.content import Points, Report
from dragoman.report.document import Block, Chart, Histogram, Line
from dragoman.report.wording import count, seconds

PART_NAMES = {
    "data": "waiting for data",
    "communication": "communication, not hidden",
    "checkpoint": "waiting for a checkpoint",
}
_MEGA = 1e6


def plots(report: Report) -> Iterable[Block]:
    curves, times = report.curves, report.step_times
    if not curves.step:
        return
    if curves.parts_s:
        yield Chart(
            title="Where the time of a step goes",
            value_title="seconds",
            number_format=".3f",
            lines=[
                Line(PART_NAMES.get(part, part), curves.step, spent, color=place)
                for place, (part, spent) in enumerate(curves.parts_s.items())
            ],
            is_stacked=True,
        )
    if times.counts:
        marks = [
            (name, where)
            for name, where in (("mean", times.mean_s), ("median", times.median_s))
            if where is not None
        ]
        end = seconds(times.edges_s[-1])
        longer = f"{count(times.longer, 'step')} took longer than {end}." if times.longer else ""
        yield Histogram(
            "How long steps took", "seconds", times.edges_s, times.counts, marks, longer
        )


def traffic(report: Report) -> Iterable[Block]:
    curves = report.curves
    sent, predicted = curves.sent_bytes, curves.predicted_bytes
    if _has_values(sent) or _has_values(predicted):
        yield Chart(
            title="Bytes that a step sends",
            value_title="MB a step",
            number_format=",.1f",
            lines=[
                line
                for line in (
                    Line("counted by the kernel", curves.step, _mega(sent), color=0),
                    Line(
                        "what the algorithm must send",
                        curves.step,
                        _mega(predicted),
                        color=1,
                        style="dashed",
                    ),
                )
                if _has_values(line.values)
            ],
        )
        yield _course(report)


def _course(report: Report) -> Chart:
    curves = report.curves
    is_binned = curves.slowest_step_s != curves.fastest_step_s
    return Chart(
        title="Time of a step" + (", with the fastest and slowest nearby" if is_binned else ""),
        value_title="seconds",
        number_format=".3f",
        spread="band",
        lines=[
            Line(
                "mean" if is_binned else "step",
                curves.step,
                curves.mean_step_s,
                curves.fastest_step_s if is_binned else (),
                curves.slowest_step_s if is_binned else (),
            )
        ],
    )


def _mega(values: Points) -> Points:
    return [None if value is None else value / _MEGA for value in values]


def _has_values(values: Sequence[float | None]) -> bool:
    return any(value is not None for value in values)
