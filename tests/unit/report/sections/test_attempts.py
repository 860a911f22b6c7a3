from unit.report.fake_run import started, step
from unit.report.rendered import report

from dragoman.report.document import Paragraph, TextTable
from dragoman.report.sections import attempts
from dragoman.telemetry.events import AttemptEnded, Incident


def resumed(run):
    run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3, 4))])
    return run.with_events(
        [
            (0.0, started(attempt=2, first_step=3)),
            *((float(n), step(n)) for n in (3, 4)),
            (5.0, AttemptEnded(4, "finished", "done")),
        ],
        attempt=2,
    )


def test_each_attempt_is_a_bar_with_its_lost_work_and_its_fault(empty_run):
    plot = attempts.plot(report(resumed(empty_run)))

    assert [(bar.row, bar.health) for bar in plot.bars] == [
        ("attempt 1", "poor"),
        ("attempt 1", "open"),
        ("attempt 2", "good"),
    ]
    lost = plot.bars[1]
    assert lost.end_at - lost.begin_at == 2.0
    assert [mark.row for mark in plot.marks] == ["attempt 1"]


def test_attempts_and_incidents_have_tables(empty_run):
    run = empty_run.with_events(
        [(0.0, started()), (1.0, step(1)), (2.0, Incident(1, "other", "x"))]
    )
    table, incidents = attempts.blocks(report(run))

    assert table.rows[0][4] == "1 to 1"
    assert incidents.rows == [["x", "1", "1", "1"]]


def test_many_incidents_are_cut_and_the_rest_is_counted(empty_run):
    many = [(2.0, Incident(1, "other", f"incident {n}")) for n in range(60)]
    run = empty_run.with_events([(0.0, started()), (1.0, step(1)), *many])
    blocks = list(attempts.blocks(report(run)))

    assert isinstance(blocks[-2], TextTable)
    assert len(blocks[-2].rows) == attempts.INCIDENTS_SHOWN
    assert blocks[-1] == Paragraph("10 more are in report.json.")
