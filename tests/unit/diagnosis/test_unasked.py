import numpy as np
import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import started, step

from dragoman.diagnosis import questions, unasked
from dragoman.diagnosis.questions import QUESTIONS, answers_of
from dragoman.diagnosis.run.fault_events import fault_events
from dragoman.diagnosis.run.faults import faults_of
from dragoman.diagnosis.run.validate import validated
from dragoman.diagnosis.unasked import unasked_of
from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    StepDone,
)
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.read.tables import read_tables


def usual_run(tmp_path, **more):
    return write_steps(new_run(tmp_path), lambda *_: with_parts(), **more)


def test_the_eleven_are_answered_in_their_order(tmp_path):
    found = answers_of(read(usual_run(tmp_path)))

    assert [(f.key, f.question) for f in found] == list(QUESTIONS.items())
    assert len(found) == 11


def test_a_run_without_any_event_is_answered_too(tmp_path):
    facts = read(new_run(tmp_path))

    assert len(answers_of(facts)) == 11
    assert unasked_of(facts) == []


def test_an_answer_that_fails_costs_no_other(tmp_path, monkeypatch):
    def fails(run):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(questions, "_ANSWERS", {**questions._ANSWERS, "network": fails})
    found = {f.key: f for f in answers_of(read(usual_run(tmp_path)))}

    assert found["network"].verdict == "not known"
    assert "ZeroDivisionError: division by zero" in found["network"].sentence
    assert found["network"].question == QUESTIONS["network"]
    assert found["step-time"].verdict == "985 ms"


def test_a_finding_that_fails_is_told(tmp_path, monkeypatch):
    def fails(run):
        raise KeyError("x")

    monkeypatch.setattr(unasked, "_FINDINGS", {"memory": ("Memory?", fails)})

    assert [f.verdict for f in unasked_of(read(usual_run(tmp_path)))] == ["not known"]


def test_a_run_in_order_has_nothing_to_add(tmp_path):
    ended = AttemptEnded(60, "finished", "done")
    run = usual_run(tmp_path, beside=lambda rank, end: [(end + 1, ended)])

    assert [f.key for f in unasked_of(read(run))] == []


def interrupted_run(tmp_path):
    run = new_run(tmp_path)
    steps = [*range(1, 31), *range(21, 41)]  # goes back by itself to step 20
    events = [(float(at), step(n)) for at, n in enumerate(steps, start=1)]
    saved = [(20.5, CheckpointSaved(20, "a", 1, 0.1)), (45.5, CheckpointSaved(35, "b", 1, 0.1))]
    run.with_events(sorted([(0.0, started(ranks=2)), *events, *saved], key=lambda event: event[0]))
    run.with_events([(0.0, started(rank=1, ranks=2)), *events], rank=1)
    run.with_events(
        [
            (0.0, started(attempt=2, first_step=36)),
            *((float(n - 35), step(n)) for n in range(36, 61)),
            (30.0, AttemptEnded(60, "preempted", "asked to stop (SIGTERM)")),
        ],
        attempt=2,
    )
    return run


def test_faults_from_few_events_are_those_from_all(tmp_path):
    run = interrupted_run(tmp_path)
    record = read(run).record
    few = fault_events(record.tables)
    found, expected = faults_of(few), faults_of(read_events(run.directory))

    assert sum(isinstance(e.stamped.event, StepDone) for e in few) < 12
    assert found == expected
    assert [fault.kind for fault in found.faults] == ["rolled back", "broken off", "preempted"]


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ('"step_s":1.0', '"step_s":-1.0', 2),
        ('"step_s":1.0', '"step_s":NaN', 2),
        ('"step_s":1.0', '"step_s":1e300', 2),
        ('"data":0.25', '"data":Infinity', 3),
        ('"learning_rate":0.0002', '"learning_rate":Infinity', 2),
    ],
)
def test_what_cannot_be_is_left_out(tmp_path, before, after, left):
    run = new_run(tmp_path)
    run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3))])
    path = run.directory.events_of(1, 0)
    lines = path.read_text().splitlines()
    assert before in lines[2]
    path.write_text("\n".join([*lines[:2], lines[2].replace(before, after), lines[3]]) + "\n")
    tables, left_out = validated(read_tables(run.directory))

    assert len(tables[StepDone]) == left
    assert left_out == 3 - left
    if left == 3:
        assert np.isnan(tables[StepDone].groups["parts_s"]["data"]).tolist() == [False, True, False]
