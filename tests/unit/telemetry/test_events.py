import json
import math

import pytest

from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import (
    KINDS,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    DeviceFound,
    Evaluated,
    EventsDropped,
    Incident,
    SensorReading,
    SensorsFound,
    Stamped,
    StepDone,
    from_line,
    to_line,
)
from dragoman.telemetry.read.events import attempts_so_far, read_events
from dragoman.telemetry.record.status import StatusFile
from dragoman.telemetry.record.writer import EventWriter

ONE_OF_EACH = [
    AttemptStarted(1, 0, 2, "node1", "cpu", 1),
    StepDone(7, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, {"forward": 0.3, "rest": 0.2}),
    Evaluated(7, 2.5, None, 31.5, 50.0, "b", "c", True, 1.0, [{"source": "ein „Wort“"}]),
    CheckpointSaved(7, "step-00000007", 1000, 0.5),
    Incident(7, "other", 'a "quoted" thing'),
    AttemptEnded(7, "finished", "steps are done"),
    SensorsFound("node1", ["processor"], {"gpu": "no driver"}, {"cpu": "2 cores"}),
    SensorReading({"cpu/percent": 12.5, "network/eth0/sent_bytes_total": 10}),
    ClockOffset("node1", -0.25, 12.5, 0.001),
    DeviceFound("cuda:0", "a GPU", "bf16", 3.1e14, None),
    EventsDropped(3, 5),
]


def step(number, **changes):
    return StepDone(number, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, **changes)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_an_event_survives_the_way_to_a_line_and_back(event):
    stamped = Stamped(12.5, 3.5, event)
    assert from_line(to_line(stamped)) == stamped


def test_every_kind_is_tried_above():
    assert {type(event) for event in ONE_OF_EACH} == set(KINDS.values())


def test_times_are_kept_to_the_microsecond_and_losses_to_the_last_bit():
    loss, norm = 2.0000000000000004, 1 / 3
    event = StepDone(1, 1 / 3, loss, 100, 1e-3 / 7, norm, True, 1 / 3, {"data": 1 / 7})
    line = to_line(Stamped(1700000000.1234567, 5.00000051, event))
    stamped = from_line(line)
    assert (stamped.event.loss, stamped.event.gradient_norm) == (loss, norm)
    assert stamped.event.learning_rate == 1e-3 / 7
    assert (stamped.event.step_s, stamped.event.parts_s) == (0.333333, {"data": 0.142857})
    assert (stamped.wall_at, stamped.monotonic_at) == (1700000000.123457, 5.000001)
    assert " " not in line


def test_what_is_not_a_number_comes_back():
    event = StepDone(1, 0.5, math.inf, 100, 1e-3, math.inf, False, math.inf)
    assert from_line(to_line(Stamped(1.0, 2.0, event))).event == event


def test_unknown_kinds_fields_and_torn_lines_are_skipped():
    line = to_line(Stamped(1.0, 2.0, step(7)))
    assert from_line(line.replace('"kind":"step"', '"kind":"future"')) is None
    assert from_line(line[:40]) is None
    assert from_line(line.replace('"epoch"', '"later":1,"epoch"')) is not None
    assert from_line("[1]") is None


def test_lines_of_older_runs_are_read():
    content = json.loads(to_line(Stamped(1.0, 2.0, step(7))))
    del content["parts_s"]
    assert from_line(json.dumps(content)).event == step(7)


def test_events_are_read_back_by_attempt_and_rank(tmp_path):
    run = RunDir(tmp_path)
    for attempt, rank in ((1, 0), (1, 1), (2, 0)):
        writer = EventWriter(run.events_of(attempt, rank))
        writer.emit(AttemptStarted(attempt, rank, 2, "host", "cpu", 1))
        writer.emit(step(attempt * 10 + rank))
        writer.close()
    (run.events / "notes.jsonl").write_text("not ours\n")
    recorded = read_events(run)
    assert [(r.attempt, r.rank) for r in recorded] == [(1, 0)] * 2 + [(1, 1)] * 2 + [(2, 0)] * 2
    assert [r.stamped.event.step for r in read_events(run, rank=0)[1::2]] == [10, 20]
    assert [r.rank for r in read_events(run, kinds=[AttemptStarted])] == [0, 1, 0]
    assert read_events(run, kinds=[]) == []
    assert attempts_so_far(run) == 2
    assert attempts_so_far(RunDir(tmp_path / "none")) == 0


def test_the_status_follows_the_events(tmp_path):
    run = RunDir(tmp_path)
    status = StatusFile(run)
    status(Stamped(1.0, 1.0, AttemptStarted(2, 0, 4, "host", "cpu", 11)))
    assert read_json(run.status)["state"] == "training"
    assert read_json(run.status)["step"] == 10
    status(Stamped(2.0, 2.0, step(11)))
    status(Stamped(3.0, 3.0, Evaluated(11, 2.0, None, 30.0, 50.0, "", "", True, 1.0)))
    status(Stamped(4.0, 4.0, AttemptEnded(12, "finished", "steps are done")))
    content = read_json(run.status)
    assert content["state"] == "finished"
    assert (content["step"], content["attempt"], content["ranks"]) == (12, 2, 4)
    assert (content["bleu"], content["heartbeat_at"]) == (30.0, 4.0)
