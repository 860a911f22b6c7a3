"""Events on a disk that refuses, and at a kill: what is lost is bounded, and a person is told."""

import random
import re
import signal
import subprocess
import sys

import pytest
from processes import dragoman, losses, wait_until

from dragoman.rundir import RunDir
from dragoman.telemetry.read.events import read_events

pytestmark = pytest.mark.timeout(300)

STEPS = """
import os, sys, time
from pathlib import Path
from dragoman.rundir import RunDir
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.record.status import StatusFile
from dragoman.telemetry.record.writer import EventWriter
run = RunDir(Path(sys.argv[1]))
done = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
writer = EventWriter(run.events_of(1, 0), [StatusFile(run)])
for step in range(1, 10**6):
    time.sleep(float(sys.argv[3]))
    writer.emit(StepDone(step, 0.5, 3.0, 9, 1e-3, 0.7, True, 0.5, {"data": 0.1}))
    os.pwrite(done, b"%8d" % step, 0)
"""


STEP_S = 0.1


def test_a_kill_loses_no_more_than_the_step_that_was_being_recorded(tmp_path):
    chance = random.Random(8)
    for number in range(4):
        run, done = RunDir(tmp_path / str(number)), tmp_path / f"done-{number}"
        process = subprocess.Popen([sys.executable, "-c", STEPS, run.root, done, str(STEP_S)])
        wait_until(lambda done=done: done.exists() and done.read_bytes() >= b"%8d" % 3)
        chosen_s = chance.uniform(0, 2 * STEP_S)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(chosen_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        recorded = [read.stamped.event.step for read in read_events(run)]
        assert recorded == list(range(1, len(recorded) + 1))
        assert len(recorded) >= int(done.read_bytes()) - 1, f"killed after {chosen_s} s"


@pytest.mark.cluster
def test_events_that_cannot_be_written_are_told_of_and_counted_at_the_end(digits, tmp_path):
    run = tmp_path / "run"
    assert dragoman("train", digits, "--run", run, "--set", "training.steps=5").returncode == 0
    before = losses(run)
    (run / "events").rename(run / "events-before")
    (run / "events").write_text("in the place of the folder")
    done = dragoman("train", digits, "--run", run)
    assert done.returncode == 0, done.stderr
    told = re.findall(r"warning: (\S+): cannot be written \(([^)]+)\)", done.stderr)
    assert told == [(str(run / "events" / "attempt-001-rank-0000.jsonl"), "Not a directory")]
    missing = re.search(r"jsonl: (\d+) event\(s\) of this attempt are missing", done.stderr)
    assert missing, done.stderr
    assert int(missing[1]) > 15, "steps, evaluations, checkpoints and the end of the attempt"
    assert "can be written again" not in done.stderr
    (run / "events").unlink()
    (run / "events-before").rename(run / "events")
    assert losses(run) == before


def test_when_events_can_be_written_again_the_number_lost_is_told(tmp_path):
    """In a process of its own, whose console is read."""
    program = (
        "import os, sys; from pathlib import Path\n"
        "from dragoman.console import console_output\n"
        "from dragoman.telemetry.events import Incident\n"
        "from dragoman.telemetry.record.writer import EventWriter\n"
        "output = console_output(); output.__enter__()\n"
        "path = Path(sys.argv[1])\n"
        "path.symlink_to('/dev/full')\n"
        "writer = EventWriter(path)\n"
        "for number in range(3):\n"
        "    writer.emit(Incident(number, 'other', 'x'))\n"
        "while writer.dropped < 3: pass\n"
        "path.unlink()\n"
        "writer.emit(Incident(3, 'other', 'x'))\n"
        "while not path.exists() or not path.stat().st_size: pass\n"
        "writer.close()\n"
    )
    path = tmp_path / "x.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines() == [
        f"warning: {path}: cannot be written (No space left on device); training goes on, and its "
        "events are lost until it can be",
        f"warning: {path}: can be written again; 3 event(s) were lost",
        f"warning: {path}: 3 event(s) of this attempt are missing",
    ]
