import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import wait_until

from dragoman.rundir import RunDir
from dragoman.telemetry.events import EventsDropped, Incident, StepDone, from_line
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.record import writer as writer_module
from dragoman.telemetry.record.writer import CAPACITY, EventWriter


def step(number):
    return StepDone(number, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, {"forward": 0.3, "rest": 0.2})


def events_in(path):
    lines = path.read_text().split("\n")
    return [stamped.event for line in lines if (stamped := from_line(line))]


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def test_everything_is_written_in_order(tmp_path):
    writer = EventWriter(tmp_path / "events" / "x.jsonl")
    for number in range(1000):
        writer.emit(step(number))
    writer.close()
    assert events_in(tmp_path / "events" / "x.jsonl") == [step(number) for number in range(1000)]
    assert writer.dropped == 0


def test_an_event_is_in_the_file_without_waiting_for_more(tmp_path):
    path = tmp_path / "x.jsonl"
    writer = EventWriter(path)
    writer.emit(step(1))
    wait_until(lambda: path.exists() and events_in(path) == [step(1)])
    writer.close()


def test_a_slow_disk_drops_counts_and_writes_the_count(tmp_path):
    gate = threading.Event()
    path = tmp_path / "x.jsonl"
    writer = EventWriter(path, exporters=[lambda stamped: gate.wait() and None])
    writer.emit(step(0))
    wait_until(lambda: not writer._waiting)  # it holds the first, and the gate holds it
    for number in range(1, CAPACITY + 501):
        writer.emit(step(number))
    assert writer.dropped == 500
    gate.set()
    writer.close()
    events = events_in(path)
    assert len(of(StepDone, events)) == CAPACITY + 1
    assert sum(event.count for event in of(EventsDropped, events)) == 500
    assert of(EventsDropped, events)[-1].total == 500


def test_a_disk_that_refuses_stops_nothing_and_is_told_of_once_it_takes_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(writer_module, "EMIT_DROPS_EVERY_S", 0.0)
    path = tmp_path / "x.jsonl"
    path.symlink_to("/dev/full")
    writer = EventWriter(path)
    writer.emit(step(1))
    writer.emit(step(2))
    wait_until(lambda: writer.dropped == 2)
    path.unlink()
    writer.emit(step(3))
    writer.close()
    # The writer may tell of what is lost before the third event reaches it.
    written = events_in(path)
    assert len(written) == 2
    assert step(3) in written
    assert EventsDropped(2, 2) in written
    assert writer.dropped == 2


def test_a_folder_that_cannot_be_made_never_stops_the_writer(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    writer = EventWriter(tmp_path / "file" / "x.jsonl")
    writer.emit(step(1))
    writer.close()
    assert writer.dropped == 1


def test_an_event_that_json_cannot_say_is_dropped_alone(tmp_path):
    writer = EventWriter(tmp_path / "x.jsonl")
    writer.emit(Incident(1, "other", object()))
    writer.emit(step(2))
    writer.close()
    assert of(StepDone, events_in(tmp_path / "x.jsonl")) == [step(2)]
    assert of(EventsDropped, events_in(tmp_path / "x.jsonl")) == [EventsDropped(1, 1)]


def test_a_file_that_ends_in_a_torn_line_is_gone_on_with_on_a_new_one(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"kind":"step","wall')
    writer = EventWriter(path)
    writer.emit(step(1))
    writer.close()
    assert events_in(path) == [step(1)]
    assert len(path.read_text().splitlines()) == 2


def test_a_mirror_that_fails_is_told_of_once_and_the_others_go_on(tmp_path):
    seen = []

    def broken(stamped):
        if stamped.event.step != 3:
            raise KeyError("no such figure")

    path = tmp_path / "x.jsonl"
    writer = EventWriter(path, exporters=[broken, lambda stamped: seen.append(stamped.event)])
    for number in range(1, 6):
        writer.emit(step(number))
    writer.close()
    events = events_in(path)
    assert of(StepDone, events) == seen == [step(number) for number in range(1, 6)]
    assert [event.step for event in of(Incident, events)] == [1, 4]  # between them it worked
    assert of(Incident, events)[0].message == (
        "broken cannot follow the events: KeyError: 'no such figure'"
    )
    assert writer.dropped == 0


@pytest.mark.parametrize("kilobytes", [1, 100, 800])
def test_a_kill_at_any_moment_leaves_all_but_a_torn_last_line(tmp_path, kilobytes):
    program = (
        "import sys; from pathlib import Path\n"
        "from dragoman.telemetry.events import StepDone\n"
        "from dragoman.telemetry.record.writer import EventWriter\n"
        "writer = EventWriter(Path(sys.argv[1]))\n"
        "number = 0\n"
        "while True:\n"
        "    writer.emit(StepDone(number, .5, 3.0, 9, 1e-3, .7, True, .5, {'data': .1}))\n"
        "    number += writer.dropped == 0\n"
        "    len(writer._waiting) > 5000 and __import__('time').sleep(0.01)\n"
    )
    run = RunDir(tmp_path)
    path = run.events_of(1, 0)
    process = subprocess.Popen([sys.executable, "-c", program, str(path)])
    try:
        wait_until(lambda: path.exists() and path.stat().st_size > 1000 * kilobytes)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    numbers = [recorded.stamped.event.step for recorded in read_events(run)]
    assert len(numbers) > 1
    assert numbers == list(range(len(numbers)))
    lines = Path(path).read_bytes().split(b"\n")
    assert len(lines) - 1 in (len(numbers), len(numbers) + 1)
