import logging
import os
import subprocess
import sys
import threading

import pytest

from dragoman import console
from dragoman.console import (
    Progress,
    StatusLine,
    console_output,
    duration,
    log_to_stderr,
    visible,
    waiting,
)

LOGGER = logging.getLogger("dragoman.somewhere")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (7800, "2 h 10 min"),
        (100_000, "1 d 3 h"),
        (-5, "0 s"),
    ],
)
def test_durations_read_at_a_glance(seconds, words):
    assert duration(seconds) == words


def test_control_characters_are_escaped_and_other_text_is_not():
    assert visible("a\x1b[2Jb\rc\x9b1m\x7f\0") == r"a\x1b[2Jb\rc\x9b1m\x7f\x00"
    text = "tab\tline\nשלום \u200f😀 Köln"
    assert visible(text) == text


def shown_by(program, *, on_terminal=False, **options):
    """The output of a program that has entered `console_output`."""
    program = (
        "import logging; from dragoman.console import *\n"
        "output = console_output(); output.__enter__()\n"
        "logger = logging.getLogger('dragoman.x')\n"
    ) + program
    command = [sys.executable, "-c", program]
    if on_terminal:
        command = ["script", "-qec", f'{sys.executable} -c "{program}"', "/dev/null"]
    return subprocess.run(command, capture_output=True, check=True, **options)


def test_without_the_console_nothing_is_shown(capfd):
    LOGGER.info("a line")
    LOGGER.warning("a warning")
    LOGGER.error("an error")
    line = StatusLine(plain_every_s=100)
    line.show("step 1")
    line.clear()
    assert capfd.readouterr() == ("", "")


def test_the_console_shows_lines_warnings_and_errors(capfd):
    with console_output():
        LOGGER.debug("not this")
        LOGGER.info("100% [bold]as it is[/bold]")
        LOGGER.warning("a warning")
        LOGGER.error("an error")
        StatusLine(plain_every_s=100).show("step 1")
    LOGGER.error("afterwards")
    shown = capfd.readouterr()
    assert shown.out == "100% [bold]as it is[/bold]\nstep 1\n"
    assert shown.err == "warning: a warning\nerror: an error\n"


def test_log_lines_can_stay_out_of_what_is_piped(capfd):
    with console_output():
        log_to_stderr()
        LOGGER.info("step 5")
    with console_output():
        LOGGER.info("step 6")
    assert capfd.readouterr() == ("step 6\n", "step 5\n")


def test_a_status_line_can_stay_out_of_what_is_piped(capfd):
    with console_output():
        StatusLine(plain_every_s=100, to_stderr=True).show("[1] of 2")
    assert capfd.readouterr() == ("", "[1] of 2\n")


def test_the_console_leaves_logging_as_it_was(caplog):
    logger = logging.getLogger("dragoman")
    before = logger.level, logger.propagate, list(logger.handlers)
    with console_output():
        LOGGER.warning("for the console alone")
    assert (logger.level, logger.propagate, logger.handlers) == before
    assert caplog.messages == []
    LOGGER.warning("for everybody")
    assert caplog.messages == ["for everybody"]


def test_a_reader_who_has_gone_ends_nothing():
    shown = shown_by(
        "import os; r, w = os.pipe(); os.dup2(w, 1); os.close(w); os.close(r)\n"
        "logger.info('lost'); logger.info('lost'); logger.warning('heard')\n"
    )
    assert shown.stderr == b"warning: heard\n"


def test_a_terminal_that_was_closed_ends_nothing():
    ours, theirs = os.openpty()
    program = (
        "import sys; from dragoman.console import *; from dragoman import console; import logging\n"
        "output = console_output(); output.__enter__()\n"
        "line = StatusLine(100); line.show('shown'); sys.stdin.readline()\n"
        "line.show('lost'); line.clear(); echo('lost')\n"
        "logger = logging.getLogger('dragoman.x'); logger.info('lost'); logger.warning('lost')\n"
        "print('lost', flush=True); sys.exit(7)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        assert os.read(ours, 5) == b"shown"
        os.close(ours)
        process.communicate(b"go on\n")
    assert process.returncode == 7


def test_last_words_need_no_lock():
    """Another thread may hold the locks of logging and of the streams, and never come back."""
    program = (
        "import os, threading; held = threading.Event()\n"
        "def hold():\n"
        "    logging._lock.acquire()\n"
        "    [handler.acquire() for handler in logging.getLogger('dragoman').handlers]\n"
        "    held.set(); threading.Event().wait()\n"
        "threading.Thread(target=hold, daemon=True).start(); held.wait()\n"
        "write_last_error('so ends it'); os._exit(0)\n"
    )
    assert shown_by(program, timeout=60).stderr == b"error: so ends it\n"


def test_quick_work_shows_no_progress(capsys):
    with Progress("reading", unit="pairs") as progress:
        for _ in range(10_000):
            progress.advance()
    assert capsys.readouterr().out == ""


@pytest.fixture
def slow(monkeypatch):
    """Three seconds pass between any two looks at the clock."""
    now = iter(range(0, 1000, 3))
    monkeypatch.setattr(console.time, "monotonic", lambda: next(now))


def advance(progress):
    with progress:
        for _ in range(4):
            progress.advance(1000)


@pytest.mark.parametrize("to_stderr", [False, True])
def test_slow_work_is_shown_in_plain_lines_away_from_a_terminal(slow, capsys, to_stderr):
    with console_output():
        advance(Progress("reading", unit="pairs", total=5000, to_stderr=to_stderr))
    shown = capsys.readouterr()
    first, other = (shown.err, shown.out) if to_stderr else (shown.out, shown.err)
    assert first.startswith("reading: 1,000 of 5,000 pairs (333/s), about 12 s left\n")
    assert other == ""


def test_few_and_large_things_are_shown_one_by_one(slow, capsys):
    with console_output(), Progress("installing", unit="steps", total=3) as progress:
        progress.advance()
    assert capsys.readouterr().out == "installing: 1 of 3 steps (0/s), about 6 s left\n"


def test_bytes_are_shown_in_megabytes(slow, capsys):
    with console_output(), Progress("copying", unit="bytes", total=30_000_000) as progress:
        progress.advance(6_000_000)
    assert capsys.readouterr().out == "copying: 6.0 of 30.0 MB (2.0 MB/s), about 12 s left\n"


def test_a_wait_in_which_nothing_advances_is_shown_too(capsys, monkeypatch):
    monkeypatch.setattr(console, "QUIET_S", 0.0)
    monkeypatch.setattr(console, "TICK_S", 0.001)
    shown = ""
    with (
        console_output(),
        Progress("installing", unit="steps", total=3) as progress,
        progress.ticking(),
    ):
        while not shown:
            shown = capsys.readouterr().out
    assert shown == "installing: 0 of 3 steps (0/s)\n"


def test_slow_work_is_logged_where_there_is_no_console(slow, capfd, caplog):
    caplog.set_level("INFO", "dragoman")
    advance(Progress("reading", unit="pairs", total=5000))
    assert caplog.messages[0].startswith("reading: 1,000 of 5,000 pairs (")
    assert capfd.readouterr() == ("", "")


def test_a_status_line_is_due_again_after_its_pause():
    line = StatusLine(plain_every_s=100)
    assert line.is_due()
    line.show("step 1")
    assert not line.is_due()


def test_on_a_terminal_the_line_is_rewritten_in_place():
    shown = shown_by(
        "line = StatusLine(100)\n"
        "line.show('first'); line.show('second'); line.clear(); print('end')",
        on_terminal=True,
    )
    assert shown.stdout == b"first\r\x1b[Ksecond\r\x1b[Kend\r\n"


def test_the_time_left_is_shown_where_the_whole_is_known(slow, capsys):
    with console_output():
        advance(Progress("reading", unit="pairs", total=8000))
        advance(Progress("reading", unit="pairs", total=8000, is_about=True))
        advance(Progress("reading", unit="pairs", total=500, is_about=True))
        advance(Progress("reading", unit="pairs"))
    exact, _, about, _, exceeded, _, unknown, _ = capsys.readouterr().out.splitlines()
    assert exact == "reading: 1,000 of 8,000 pairs (333/s), about 21 s left"
    assert about == "reading: 1,000 of about 8,000 pairs (333/s), about 21 s left"
    assert exceeded == unknown == "reading: 1,000 pairs (333/s)"


def test_a_wait_is_shown_by_the_clock(monkeypatch, capsys):
    monkeypatch.setattr(console, "QUIET_S", 0.0)
    monkeypatch.setattr(console, "PLAIN_EVERY_S", 0.0)
    monkeypatch.setattr(console, "TICK_S", 0.001)
    shown = threading.Event()
    monkeypatch.setattr(
        console._console, "print", lambda text, markup: lines.append(text) or shown.set()
    )
    lines = []
    with console_output(), waiting("installing", expected_s=1000):
        assert shown.wait(60)
    assert lines[0].startswith("installing: 0 s, about 16 min")
    shown.clear()
    lines.clear()
    with console_output(), waiting("installing"):
        assert shown.wait(60)
    assert lines[0] == "installing: 0 s"


def test_a_wait_of_a_command_that_programs_call_is_shown_to_people_alone(monkeypatch):
    monkeypatch.setattr(console, "QUIET_S", 0.0)
    monkeypatch.setattr(console, "TICK_S", 0.0)
    begun = []
    monkeypatch.setattr(console, "Progress", lambda *given: begun.append(given) or Progress(*given))
    with console_output(), waiting("loading", on_terminal_only=True):
        assert not begun
    monkeypatch.setattr(console._console, "_force_terminal", True)
    with console_output(), waiting("loading", on_terminal_only=True):
        assert begun


def test_progress_goes_where_the_log_goes(slow, capsys):
    with console_output():
        log_to_stderr()
        advance(Progress("reading", unit="pairs"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("reading: 1,000 pairs")


def test_on_a_terminal_there_is_a_bar_with_the_time_left_and_one_at_a_time():
    shown = shown_by(
        "import dragoman.console as c; c.QUIET_S = 0.0\n"
        "with Progress('encoding', 'pairs', 4000) as outer:\n"
        "    outer.advance(1000)\n"
        "    with Progress('hashing', 'bytes', 9) as inner:\n"
        "        inner.advance(2)\n"
        "print('end')",
        on_terminal=True,
    ).stdout.decode()
    assert "encoding" in shown
    assert "1,000 of 4,000 pairs" in shown
    assert "left" in shown
    assert "hashing" not in shown
    assert shown.rstrip().endswith("end")
