import os
import shutil

import pytest
from unit.report.fake_run import step
from unit.watch.growing_run import append, new_run, start, training

from dragoman.telemetry.events import AttemptStarted, StepDone
from dragoman.watch import event_tail
from dragoman.watch.event_tail import EventTail


@pytest.fixture
def run(tmp_path):
    return new_run(tmp_path / "run")


def steps(tail):
    return [
        (added.attempt, added.rank, stamped.event.step)
        for added in tail.added()
        for stamped in added.events
        if isinstance(stamped.event, StepDone)
    ]


def test_each_event_comes_once(run):
    append(run, [start(-9), *training(1, 2)])
    tail = EventTail(run)
    assert steps(tail) == [(1, 0, 1), (1, 0, 2)]
    assert steps(tail) == []
    append(run, training(3, 3))
    assert steps(tail) == [(1, 0, 3)]


def test_a_line_comes_when_it_is_whole(run):
    append(run, [start(-9)])
    tail = EventTail(run)
    assert steps(tail) == []
    path = run.events_of(1, 0)
    before = path.read_bytes()
    append(run, training(1, 1))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(before) + 40])
    assert steps(tail) == []
    path.write_bytes(whole)
    assert steps(tail) == [(1, 0, 1)]


def test_of_a_long_file_the_beginning_says_who_writes_it_and_the_end_is_read(run, monkeypatch):
    monkeypatch.setattr(event_tail, "HEAD_BYTES", 2000)
    monkeypatch.setattr(event_tail, "TAIL_BYTES", 3000)
    append(run, [start(-9), *training(1, 500)])
    [added] = EventTail(run).added()
    kinds = [type(stamped.event) for stamped in added.events]
    numbers = [s.event.step for s in added.events if isinstance(s.event, StepDone)]
    assert kinds[0] is AttemptStarted
    assert added.is_anew
    assert numbers == list(range(numbers[0], 501))
    assert 3 <= len(numbers) < 20


def test_new_ranks_and_attempts_are_seen_and_old_attempts_are_not_read(run):
    append(run, [start(-90), *training(1, 3)], attempt=1)
    append(run, [start(-50, 2), *training(4, 4)], attempt=2)
    tail = EventTail(run)
    assert steps(tail) == [(2, 0, 4)]
    append(run, training(4, 4), attempt=2, rank=1)
    append(run, training(5, 5), attempt=3)
    assert steps(tail) == [(2, 1, 4), (3, 0, 5)]
    append(run, training(9, 9), attempt=2)  # late, from another host
    assert steps(tail) == [(2, 0, 9)]


def test_a_file_that_shrinks_is_read_anew(run):
    append(run, [start(-9), *training(1, 20)])
    tail = EventTail(run)
    assert len(steps(tail)) == 20
    run.events_of(1, 0).unlink()
    append(run, training(7, 7))
    [added] = tail.added()
    assert added.is_anew
    assert [s.event.step for s in added.events] == [7]


def test_folders_that_vanish_and_come_back(run):
    append(run, training(1, 2))
    tail = EventTail(run)
    assert len(steps(tail)) == 2
    shutil.rmtree(run.events)
    assert steps(tail) == []
    run.events.mkdir()
    append(run, training(1, 1))
    assert steps(tail) == [(1, 0, 1)]


def test_lines_that_are_no_events_are_left_out(run):
    append(run, [start(-9)])
    with run.events_of(1, 0).open("ab") as file:
        file.write(b'\xff\xfe garbage\n{"kind":"step"}\n{"kind":"from-the-future","wall_at":1}\n\n')
    append(run, training(1, 1))
    assert steps(EventTail(run)) == [(1, 0, 1)]


def test_a_line_without_end_does_not_hold_up_what_follows(run, monkeypatch):
    monkeypatch.setattr(event_tail, "MOST_BYTES_AT_ONCE", 1000)
    run.events_of(1, 0).write_bytes(b"x" * 2500 + b"\n")
    append(run, [(0.0, step(1))])
    tail = EventTail(run)
    assert [found for _ in range(5) for found in steps(tail)] == [(1, 0, 1)]


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(run):
    os.mkfifo(run.events_of(1, 0))
    append(run, training(1, 1), rank=1)
    assert steps(EventTail(run)) == [(1, 1, 1)]


def test_more_than_is_read_at_once_comes_with_the_next_calls(run, monkeypatch):
    monkeypatch.setattr(event_tail, "MOST_BYTES_AT_ONCE", 3000)
    append(run, training(1, 40))
    tail = EventTail(run)
    first = steps(tail)
    assert 0 < len(first) < 40
    later = [found for _ in range(20) for found in steps(tail)]
    assert [number for _, _, number in first + later] == list(range(1, 41))
