"""The screen is tested at a real terminal: a pseudo-terminal, whose settings are compared."""

import os
import signal
import subprocess
import sys
import termios
import time
from functools import partial

import pexpect
import psutil
import pytest
from browser.invented_run import write_invented_run

from dragoman.rundir import RunDir
from dragoman.watch import terminal
from dragoman.watch.terminal import watch_in_terminal

pytestmark = pytest.mark.timeout(120)

PROGRAM = """
import sys, termios
from pathlib import Path
from dragoman.rundir import RunDir
from dragoman.watch.terminal import watch_in_terminal
before = termios.tcgetattr(0)
try:
    watch_in_terminal([RunDir(Path(name)) for name in sys.argv[1:]])
finally:
    print("restored" if termios.tcgetattr(0) == before else "changed", flush=True)
"""
ENTERED, LEFT = r"\x1b\[\?1049h", r"\x1b\[\?1049l"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_invented_run(tmp_path_factory.mktemp("runs") / "run").directory


@pytest.fixture
def watching(run):
    environment = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    child = pexpect.spawn(
        sys.executable,
        ["-c", PROGRAM, str(run.root)],
        env=environment,
        encoding="utf-8",
        timeout=100,
        dimensions=(40, 150),
        # Programs that a shell starts in the background are born deaf to Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    yield child
    child.close(force=True)


def test_q_quits_and_leaves_the_terminal_as_it_was(watching):
    watching.expect(ENTERED)
    watching.expect("finished")
    watching.expect("Fully trained?")
    watching.send("q")
    watching.expect(LEFT)
    watching.expect("restored")
    watching.expect(pexpect.EOF)
    watching.close()
    assert watching.exitstatus == 0


def test_control_c_quits(watching):
    watching.expect(ENTERED)
    watching.expect("finished")
    watching.sendintr()
    watching.expect(LEFT)
    watching.expect("restored")
    watching.expect(pexpect.EOF)
    watching.close()
    assert watching.exitstatus == 0


def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(watching):
    watching.expect(ENTERED)
    watching.expect("finished")
    watching.kill(signal.SIGTERM)
    watching.expect(LEFT)
    watching.expect("restored")
    watching.expect(pexpect.EOF)
    watching.close()
    assert watching.exitstatus == 128 + signal.SIGTERM


def test_another_size_is_drawn_at_once(watching):
    watching.expect(ENTERED)
    watching.expect("finished")
    watching.setwinsize(15, 60)
    # The last of 15 lines, then the first of the next screen.
    watching.expect(r"\x1b\[15;1H[^\x1b]*(?:\x1b\[[0-9;]*m[^\x1b]*)*\x1b\[1;1H")
    watching.send("q")
    watching.expect("restored")


def test_it_can_be_stopped_and_goes_on(watching):
    watching.expect(ENTERED)
    watching.expect("finished")
    watching.kill(signal.SIGTSTP)
    watching.expect(LEFT)
    while psutil.Process(watching.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.05)  # it would be woken before it sleeps
    watching.kill(signal.SIGCONT)
    watching.expect(ENTERED)
    watching.send("q")
    watching.expect("restored")


def test_without_a_terminal_one_screen_is_printed(run):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("termios.tcgetattr(0)", "0"), str(run.root)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
        env=os.environ | {"COLUMNS": "100", "PYTHONUTF8": "1"},
    )
    assert "\x1b" not in done.stdout
    assert "finished" in done.stdout
    assert "Average step" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    assert done.stderr == ""


@pytest.mark.parametrize("columns", ["wide", "0", "-3", ""])
def test_a_width_that_is_none_is_passed_over(run, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(terminal, "PLAIN_WAIT_S", 0.0)
    watch_in_terminal([run])
    assert "finished" in capsys.readouterr().out


def test_a_fault_of_the_screen_leaves_the_terminal_as_it_was(run, monkeypatch):
    """In this process, whose standard input is made a terminal."""
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    with (
        open(theirs, closefd=False) as stdin,
        open(theirs, "w", closefd=False) as stdout,
        monkeypatch.context() as patched,
    ):
        patched.setattr(sys, "stdin", stdin)
        patched.setattr(sys, "stdout", stdout)
        patched.setenv("TERM", "xterm")
        patched.setattr(terminal, "screen_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            watch_in_terminal([RunDir(run.root)])
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    os.close(ours)
