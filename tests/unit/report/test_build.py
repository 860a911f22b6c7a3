import json
import math

import numpy as np
import pytest
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step
from unit.report.rendered import report as diagnosed

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.questions import Diagnosis
from dragoman.diagnosis.run.facts import read_facts
from dragoman.diagnosis.run.record import read_run
from dragoman.errors import UserError
from dragoman.report.build import report_of
from dragoman.report.content import Report
from dragoman.report.write import to_json
from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptEnded, Incident


def report(run: FakeRun, read_s_after_start: float = 20.0) -> Report:
    facts = read_facts(run.directory, read_at=WALL_AT + read_s_after_start)
    return report_of(facts, Diagnosis({}, {}))


def test_a_finished_run_has_its_reason_its_workers_and_its_hosts(finished_run):
    found = report(finished_run)

    assert found.state.name == "finished"
    assert found.state.reason == "training.steps = 4 are done"
    assert found.attempts[0].ranks == 2
    assert found.attempts[0].hosts == ["host-0", "host-1"]


def test_parameters_follow_from_the_shape_and_the_vocabulary(finished_run):
    assert report(finished_run).model.parameters == 60_880_896


def test_a_later_attempt_takes_the_place_of_the_steps_it_repeats(empty_run):
    empty_run.with_events(
        [(0.0, started()), *((float(n), step(n, loss=9.0)) for n in (1, 2, 3, 4))]
    )
    empty_run.with_events(
        [
            (0.0, started(attempt=2, first_step=3)),
            (2.0, step(3, 2.0, loss=5.0)),
            (4.0, step(4, 2.0, loss=4.0)),
            (6.0, step(5, 2.0, loss=3.0)),
            (7.0, AttemptEnded(5, "finished", "done")),
        ],
        attempt=2,
    )
    found = report(empty_run, 2000.0)

    assert found.curves.step == [1, 2, 3, 4, 5]
    assert found.curves.training_loss == [9.0, 9.0, 5.0, 4.0, 3.0]
    assert [attempt.wall_s for attempt in found.attempts] == [4.0, 7.0]
    assert [(a.lost_steps, a.lost_s) for a in found.attempts] == [(2, 2.0), (0, 0.0)]
    assert [attempt.state for attempt in found.attempts] == ["broken off", "finished"]


def test_work_after_a_checkpoint_is_lost_even_before_it_is_repeated(empty_run):
    empty_run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3, 4))])
    empty_run.with_events(
        [(0.0, started(attempt=2, first_step=2)), (1.0, step(2))],
        attempt=2,
    )
    found = report(empty_run, 1002.0)

    assert found.state.step == 2
    assert found.curves.step == [1, 2]
    assert found.attempts[0].lost_steps == 3


def test_an_evaluation_after_the_resumed_step_is_lost_too(empty_run):
    empty_run.with_events(
        [(0.0, started()), (1.0, step(1)), (2.0, step(2)), (4.0, evaluated(2, bleu=99.0))]
    )
    empty_run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)
    found = report(empty_run, 1002.0)

    assert found.evaluations == []
    assert found.attempts[0].lost_s == 1.0 + 2.0


def test_an_evaluation_without_scores_yet_hides_no_samples_and_no_signature(empty_run):
    late = evaluated(2, bleu=None, bleu_signature="", chrf_signature="", samples=[])
    empty_run.with_events(
        [
            *((0.0, started()), (1.0, step(1)), (2.0, evaluated(1, bleu=12.0))),
            *((3.0, step(2)), (4.0, late)),
        ]
    )
    found = report(empty_run)

    assert found.bleu_signature == "nrefs:1|case:mixed"
    assert [(shown.split, shown.step) for shown in found.translations] == [("validation", 1)]
    assert [e.bleu for e in found.evaluations] == [12.0, None]


def test_a_torn_last_line_costs_that_event_only(finished_run):
    path = finished_run.directory.events_of(1, 0)
    path.write_bytes(path.read_bytes()[:-40])
    path = finished_run.directory.events_of(1, 1)
    path.write_bytes(path.read_bytes()[:-40])
    found = report(finished_run)

    assert found.curves.step == [1, 2, 3, 4]
    assert found.state.name == "training"


def test_a_run_without_any_step_has_a_report(empty_run):
    found = report(empty_run)

    assert found.state.name == "preparing"
    assert found.attempts == []
    assert found.translations == []
    assert found.curves.step == []


def test_a_trouble_that_all_ranks_tell_is_counted_once(empty_run):
    skipped = [
        Incident(1, "other", "gradients were not finite"),
        Incident(2, "other", "gradients were not finite"),
    ]
    for rank in (0, 1):
        empty_run.with_events(
            [(0.0, started(rank=rank, ranks=2)), (1.0, skipped[0]), (2.0, skipped[1])], rank=rank
        )
    (trouble,) = report(empty_run).troubles

    assert (trouble.times, trouble.first_step, trouble.last_step) == (2, 1, 2)


def test_a_damaged_manifest_is_named_and_stops_nothing(finished_run):
    finished_run.directory.manifest.write_text("{ torn")
    found = report(finished_run)

    assert found.model.vocabulary == 32_768  # as the settings say
    assert len(found.unreadable) == 1
    assert "manifest.json" in found.unreadable[0]
    assert found.attempts[0].ranks == 2  # as the events say


def test_losses_that_are_not_finite_become_none(empty_run):
    empty_run.with_events(
        [
            (0.0, started()),
            (1.0, step(1, loss=math.nan, updated=False)),
            (3.0, evaluated(1, bleu=None, validation_loss=math.inf)),
        ]
    )
    found = report(empty_run)

    assert found.curves.training_loss == [None]
    assert found.evaluations[0].validation_loss is None
    assert found.evaluations[0].bleu is None
    assert found.skipped_updates == 1


def test_a_folder_that_is_no_run_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match="is not a run directory") as refusal:
        read_run(RunDir(tmp_path), read_at=0.0)
    assert "\n" not in str(refusal.value)


def test_figures_that_are_not_finite_become_null(finished_run):
    figures = [
        Figure("loss", float("inf"), "nats", float("nan"), 2.0),
        Figure("n", np.int64(3), ""),
    ]
    finding = Finding("not yet", "low", "It diverged.", figures)
    content = json.loads(to_json(diagnosed(finished_run, {"trained": finding})))

    (loss, count) = content["answers"][0]["evidence"]
    assert (loss["value"], loss["low"], loss["high"]) == (None, None, 2.0)
    assert count["value"] == 3
