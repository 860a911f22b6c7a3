import pytest

from dragoman.errors import UserError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    FORMAT,
    AttemptStarted,
    Incident,
    StepDone,
)
from dragoman.telemetry.read.events import (
    attempts_so_far,
    newest_format,
    read_events,
    refuse_newer_format,
)
from dragoman.telemetry.record.writer import EventWriter


def step(number, **changes):
    return StepDone(number, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, **changes)


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


def test_kinds_that_were_called_otherwise_are_found_by_what_they_are_now(tmp_path):
    run = RunDir(tmp_path)
    run.events.mkdir()
    line = '{"kind":"trouble","wall_at":1,"monotonic_at":1,"step":3,"what":"odd"}'
    run.events_of(1, 0).write_text(line)
    (recorded,) = read_events(run, kinds=[Incident])
    assert recorded.stamped.event == Incident(3, "other", "odd")


def test_each_file_begins_with_its_format(tmp_path):
    run = RunDir(tmp_path)
    assert newest_format(run) == 1
    for attempt, format_number in ((1, 2), (2, FORMAT + 1)):
        writer = EventWriter(run.events_of(attempt, 0))
        writer.emit(AttemptStarted(attempt, 0, 1, "here", "cpu", 1, format_number))
        writer.close()
    assert newest_format(run) == FORMAT + 1
    with pytest.raises(UserError, match=rf"format {FORMAT + 1}; .* up to {FORMAT}"):
        refuse_newer_format(run, newest_format(run))
