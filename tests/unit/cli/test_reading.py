import os
import pty
import subprocess
import sys

from dragoman.cli.reading import reading

PROGRAM = """
import sys, dragoman.console
from pathlib import Path
from dragoman.cli.reading import reading
from dragoman.console import console_output
dragoman.console.QUIET_S = -1.0
with console_output(), reading(Path(sys.argv[1])) as progress:
    progress(1_000_000)
"""


def shown_on_a_terminal(run):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, run], stderr=theirs, env=os.environ | {"COLUMNS": "300"}
    )
    os.close(theirs)
    shown = b""
    try:
        while more := os.read(ours, 1 << 16):
            shown += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


def test_a_terminal_shows_how_much_was_read(tmp_path):
    events = tmp_path / "events"
    events.mkdir()
    (events / "attempt-001-rank-0000.jsonl").write_bytes(bytes(2_000_000))
    assert "1.0 of 2.0 MB" in shown_on_a_terminal(tmp_path)


def test_away_from_a_terminal_nothing_is_shown(tmp_path, capfd):
    with reading(tmp_path) as progress:
        progress(1_000_000)
    assert capfd.readouterr() == ("", "")


def test_a_file_that_has_gone_is_left_to_whoever_reads_it(tmp_path):
    events = tmp_path / "events"
    events.mkdir()
    (events / "attempt-001-rank-0000.jsonl").symlink_to("nowhere")
    shown_on_a_terminal(tmp_path)
