import threading

from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    Evaluated,
    Stamped,
    StepDone,
    from_line,
    to_line,
)
from dragoman.telemetry.reader import attempts_so_far, read_events
from dragoman.telemetry.status import StatusFile
from dragoman.telemetry.writer import CAPACITY, EventWriter


def step(number):
    return StepDone(number, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, {"forward": 0.3, "rest": 0.2})


def test_an_event_survives_the_way_to_a_line_and_back():
    stamped = Stamped(12.5, 3.5, step(7))
    assert from_line(to_line(stamped)) == stamped


def test_unknown_kinds_fields_and_torn_lines_are_skipped():
    line = to_line(Stamped(1.0, 2.0, step(7)))
    assert from_line(line.replace('"kind": "step"', '"kind": "future"')) is None
    assert from_line(line[:40]) is None
    assert from_line(line.replace('"epoch"', '"later": 1, "epoch"')) is not None


def test_events_are_read_back_by_attempt_and_rank(tmp_path):
    run = RunDir(tmp_path)
    for attempt, rank in ((1, 0), (1, 1), (2, 0)):
        writer = EventWriter(run.events_of(attempt, rank))
        writer.emit(AttemptStarted(attempt, rank, 2, "host", "cpu", 1))
        writer.emit(step(attempt * 10 + rank))
        writer.close()
    recorded = read_events(run)
    assert [(r.attempt, r.rank) for r in recorded] == [(1, 0)] * 2 + [(1, 1)] * 2 + [(2, 0)] * 2
    assert [r.stamped.event.step for r in read_events(run, rank=0)[1::2]] == [10, 20]
    assert attempts_so_far(run) == 2
    assert attempts_so_far(RunDir(tmp_path / "none")) == 0


def test_a_file_torn_by_a_crash_gives_all_but_its_last_line(tmp_path):
    run = RunDir(tmp_path)
    writer = EventWriter(run.events_of(1, 0))
    for number in range(5):
        writer.emit(step(number))
    writer.close()
    path = run.events_of(1, 0)
    path.write_bytes(path.read_bytes()[:-20])
    assert [r.stamped.event.step for r in read_events(run)] == [0, 1, 2, 3]


def test_a_disk_that_cannot_be_written_never_stops_the_writer(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    writer = EventWriter(tmp_path / "file" / "x.jsonl")
    writer.emit(step(1))
    writer.close()
    assert writer.dropped == 1


def test_a_slow_disk_drops_and_counts_instead_of_waiting(tmp_path):
    gate = threading.Event()
    writer = EventWriter(tmp_path / "x.jsonl", mirrors=[lambda stamped: gate.wait() and None])
    for number in range(CAPACITY + 500):
        writer.emit(step(number))
    assert 400 <= writer.dropped <= 500
    gate.set()
    writer.close()
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == CAPACITY + 500 - writer.dropped


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
