"""Plots of how long steps took, where their time went, and what they sent."""

from dragoman.diagnosis.phrasing import count, seconds
from dragoman.report.content import Points, Report
from dragoman.report.document import Chart, Histogram, Line

PART_NAMES = {
    "data": "waiting for data",
    "communication": "communication, not hidden",
    "checkpoint": "waiting for a checkpoint",
}


def parts(report: Report) -> Chart | None:
    curves = report.curves
    if not curves.step or not curves.parts_s:
        return None
    return Chart(
        title="Where the time of a step goes",
        value_title="seconds",
        number_format=".3f",
        lines=[
            Line(PART_NAMES.get(part, part), curves.step, spent, color=place)
            for place, (part, spent) in enumerate(curves.parts_s.items())
        ],
        is_stacked=True,
    )


def histogram(report: Report) -> Histogram | None:
    times = report.step_times
    if not times.counts:
        return None
    # The answer's own figures: which steps count for a mean is decided once.
    figures = [f for answer in report.answers if answer.key == "step-time" for f in answer.evidence]
    marks = [
        (figure.name, figure.value)
        for figure in figures
        if figure.name in ("mean step", "median") and isinstance(figure.value, float)
    ]
    end = seconds(times.edges_s[-1])
    longer = f"{count(times.longer, 'step')} took longer than {end}." if times.longer else ""
    return Histogram("How long steps took", "seconds", times.edges_s, times.counts, marks, longer)


def traffic(report: Report) -> Chart | None:
    curves = report.curves
    measured = Line("counted by the kernel", curves.step, megabytes(curves.sent_bytes), color=0)
    predicted = Line(
        "what the algorithm must send",
        curves.step,
        megabytes(curves.predicted_bytes),
        color=1,
        style="dashed",
    )
    lines = [line for line in (measured, predicted) if any(v is not None for v in line.values)]
    if not lines:
        return None
    return Chart("Bytes that a step sends", "MB a step", ",.1f", lines)


def step_time(report: Report) -> Chart | None:
    """Returns the time of a step beside the traffic, where that is known."""
    if traffic(report) is None:
        return None
    curves = report.curves
    is_binned = curves.slowest_step_s != curves.fastest_step_s
    line = Line(
        "mean" if is_binned else "step",
        curves.step,
        curves.mean_step_s,
        curves.fastest_step_s if is_binned else (),
        curves.slowest_step_s if is_binned else (),
    )
    return Chart(
        title="Time of a step" + (", with the fastest and slowest nearby" if is_binned else ""),
        value_title="seconds",
        number_format=".3f",
        spread="band",
        lines=[line],
    )


def megabytes(values: Points) -> Points:
    return [None if value is None else value / 1e6 for value in values]
