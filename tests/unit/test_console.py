import subprocess
import sys

import pytest

from dragoman import console
from dragoman.console import Progress, StatusLine, duration


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


def test_quick_work_shows_no_progress(capsys):
    with Progress("reading", unit="pairs") as progress:
        for _ in range(10_000):
            progress.advance()
    assert capsys.readouterr().out == ""


def test_slow_work_is_told_in_plain_lines_away_from_a_terminal(monkeypatch, capsys):
    now = iter(range(0, 1000, 3))
    monkeypatch.setattr(console.time, "monotonic", lambda: next(now))
    with Progress("reading", unit="pairs", total=5000) as progress:
        for _ in range(4):
            progress.advance(1000)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("reading: 1,000 of 5,000 pairs (")


def test_a_status_line_away_from_a_terminal_is_a_line(capsys):
    line = StatusLine(plain_every_s=100)
    assert line.is_due()
    line.show("step 1")
    assert not line.is_due()
    line.clear()
    assert capsys.readouterr().out == "step 1\n"


def test_on_a_terminal_the_line_is_rewritten_in_place():
    program = (
        "from dragoman.console import StatusLine\n"
        "line = StatusLine(100)\n"
        "line.show('first'); line.show('second'); line.clear(); print('end')"
    )
    shown = subprocess.run(
        ["script", "-qec", f'{sys.executable} -c "{program}"', "/dev/null"],
        capture_output=True,
        check=True,
    ).stdout
    assert shown == b"first\r\x1b[Ksecond\r\x1b[Kend\r\n"
