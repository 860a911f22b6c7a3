import numpy as np
from unit.report.fake_run import started, step
from unit.report.rendered import report

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.report.curves import step_times
from dragoman.report.sections import steps


def test_parts_of_a_step_are_stacked_in_words(finished_report):
    chart = steps.parts(finished_report)

    assert chart.is_stacked
    assert [line.name for line in chart.lines] == ["waiting for data", "backward"]


def test_steps_that_are_too_long_for_the_histogram_are_counted_below_it(finished_report):
    seconds = np.append(np.full(999, 2.0), 60.0)
    found = finished_report.model_copy(update={"step_times": step_times(seconds)})
    histogram = steps.histogram(found)

    assert histogram.note.startswith("1 step took longer than")


def test_the_mean_that_is_marked_is_the_one_of_the_answer(finished_run):
    figures = [Figure("median", 2.0, "s"), Figure("mean step", 2.5, "s"), Figure("ranks", 2, "")]
    finding = Finding("2.5 s", "high", "So.", figures)

    marks = steps.histogram(report(finished_run, {"step-time": finding})).marks

    assert marks == [("median", 2.0), ("mean step", 2.5)]


def test_only_traffic_that_is_known_is_drawn(empty_run):
    events = [(float(n), step(n, traffic_bytes={"sent": 2e6})) for n in (1, 2)]
    found = report(empty_run.with_events([(0.0, started()), *events]))

    assert [line.values for line in steps.traffic(found).lines] == [[2.0, 2.0]]
    assert steps.step_time(found).lines[0].values == [1.0, 1.0]


def test_without_traffic_there_is_nothing_to_set_the_step_time_against(finished_report):
    assert steps.traffic(finished_report) is None
    assert steps.step_time(finished_report) is None
