import errno
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from browser.invented_run import write_invented_run

from dragoman.rundir import RunDir
from dragoman.watch.analysis import LEAST_PAUSE_S, URGENT_SHARE, USUAL_SHARE, Analysis, Made, make


@pytest.fixture
def run(tmp_path):
    return write_invented_run(tmp_path / "run").directory


def made_by(analysis):
    while (made := analysis.poll()) is None:
        time.sleep(0.05)
    return made


@pytest.fixture
def analysis(run):
    found = Analysis(run)
    yield found
    found.close()


def test_a_process_of_its_own_makes_the_report(analysis, run):
    made = made_by(analysis)
    assert made.error == ""
    assert made.report is not None
    assert made.cpu_s > 0
    assert made.report.model_copy(update={"read_at": 0.0}) == make(run).report.model_copy(
        update={"read_at": 0.0}
    )


def test_a_report_can_be_read_back_as_it_was_written(run):
    made = make(run)
    assert Made.model_validate_json(made.model_dump_json()) == made


def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path):
    made = make(RunDir(tmp_path / "gone"))
    assert made.report is None
    assert str(tmp_path / "gone") in made.error


class Clock:
    """Time that passes when a test says so; processes that end at once, having used 2 s of CPU."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def timed(run, monkeypatch):
    clock = Clock()
    analysis = Analysis(run, clock)
    analysis.starts = []
    monkeypatch.setattr(Analysis, "_start", lambda self: _note_start(self, clock))
    return analysis, clock


def _note_start(analysis, clock):
    analysis.starts.append(clock.now)
    analysis._started_at = analysis._ended_at = clock.now
    analysis._cpu_s = 2.0


def starts_within(timed, seconds, **news):
    analysis, clock = timed
    end = clock.now + seconds
    while clock.now < end:
        analysis.notice(**news)
        analysis.poll()
        clock.now += 0.5
    return len(analysis.starts)


def test_it_takes_a_small_share_of_a_core_however_much_is_new(timed):
    assert starts_within(timed, 1000) * 2.0 <= 1000 * USUAL_SHARE + 2.0


def test_it_takes_a_little_more_where_answers_may_change(timed):
    count = starts_within(timed, 1000, is_urgent=True)
    assert 1000 * USUAL_SHARE < count * 2.0 <= 1000 * URGENT_SHARE + 2.0


def test_nothing_is_made_while_nothing_is_new(timed):
    analysis, clock = timed
    for _ in range(100):
        analysis.poll()
        clock.now += 100
    assert len(analysis.starts) == 1
    assert LEAST_PAUSE_S > 0


def test_closing_ends_the_process(run):
    analysis = Analysis(run)
    analysis.poll()
    process = analysis._process
    assert process.poll() is None
    analysis.close()
    assert process.returncode == -signal.SIGKILL


def test_a_process_that_dies_is_told_of_and_tried_again_later(analysis):
    analysis.poll()
    os.kill(analysis._process.pid, signal.SIGKILL)
    made = made_by(analysis)
    assert made.report is None
    assert "code -9" in made.error


def test_a_full_disk_is_told_of_and_the_report_tried_again(analysis, monkeypatch):
    def refuse():
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(tempfile, "TemporaryFile", refuse)
        assert "No space left on device" in analysis.poll().error
    assert made_by(analysis).report is not None


WATCHER = """
import sys, time
from pathlib import Path
from dragoman.rundir import RunDir
from dragoman.watch import analysis
watching = analysis.Analysis(RunDir(Path(sys.argv[1])))
watching.poll()
print(watching._process.pid, flush=True)
time.sleep(600)
"""


def test_the_process_ends_with_its_watcher(run):
    pipe = run.events_of(9, 0)
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER, str(run.root)], stdout=subprocess.PIPE, text=True
    ) as watcher:
        child = int(watcher.stdout.readline())
        held = _opened_once_read(pipe)  # from here on it reads what never comes
        assert _is_alive(child)
        watcher.kill()
    while _is_alive(child):
        time.sleep(0.05)
    os.close(held)


def _opened_once_read(pipe):
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it yet
            time.sleep(0.05)


def _is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
