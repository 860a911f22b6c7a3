import logging
import os
import re
import threading

import pytest

from dragoman import __version__
from dragoman.console import StatusLine, console_output, write_last_error
from dragoman.errors import FailedElsewhereError, RunError
from dragoman.rundir import RunDir
from dragoman.telemetry.record import log_file
from dragoman.telemetry.record.log_file import (
    LOG_NAME,
    MOST_FILES,
    MOST_WAITING_LINES,
    LogFile,
    agent_writer,
    kept_log,
    rank_writer,
)

LOGGER = logging.getLogger("dragoman.somewhere")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def lines_of(run):
    """Of all files, without their times."""
    text = "".join(path.read_text() for path in sorted(run.logs.glob("*.log")))
    lines = re.sub(f"(?m)^{STAMP}", "", text).splitlines()
    return [line for line in lines if not line.startswith("process ")]


def test_what_is_logged_is_kept_with_its_time_and_level(run):
    with console_output(), kept_log(run, rank_writer("node-1", 3)):
        LOGGER.info("a line")
        LOGGER.warning("a warning\nof two lines")
        LOGGER.debug("not this")
    LOGGER.error("afterwards")
    (path,) = run.logs.iterdir()
    assert LOG_NAME.fullmatch(path.name)["writer"] == "node-1-rank-0003"
    assert re.match(STAMP, path.read_text())
    assert lines_of(run) == ["a line", "warning: a warning", "of two lines"]


def test_the_first_line_names_the_process_and_its_command(run):
    with kept_log(run, "launcher", ["hook-123"], ["dragoman", "train", "my recipe", "hook-123"]):
        pass
    (path,) = run.logs.iterdir()
    line = path.read_text().strip()
    assert line.endswith(
        f"process {os.getpid()}, Dragoman {__version__}: dragoman train 'my recipe' ***"
    )


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RunError("it broke; mend it"), "error: it broke; mend it"),
        (FailedElsewhereError(1), "error: another rank has failed"),
        (ZeroDivisionError("of a kind"), "ZeroDivisionError: of a kind"),
    ],
)
def test_the_error_that_ends_it_is_its_last_line(run, error, line):
    with pytest.raises(type(error)), kept_log(run, "launcher"):
        raise error
    assert lines_of(run)[-1] == line


def test_secrets_stay_out(run):
    with kept_log(run, "launcher", ["hook-123"]):
        LOGGER.warning("POST hook-123, and https://me:pw@x.org/y")
    assert lines_of(run) == ["warning: POST ***, and https://***@x.org/y"]


def test_last_errors_are_kept_though_a_thread_holds_every_lock(run, capfd):
    with kept_log(run, "launcher"):
        for handler in logging.getLogger("dragoman").handlers:
            handler.acquire()
        write_last_error("rank 1 is gone")
        for handler in logging.getLogger("dragoman").handlers:
            handler.release()
    assert lines_of(run) == ["error: rank 1 is gone"]
    assert capfd.readouterr().err == "error: rank 1 is gone\n"


def test_what_a_terminal_shows_for_a_moment_is_kept_now_and_then(run, monkeypatch, capsys):
    with console_output(), kept_log(run, "launcher"):
        line = StatusLine(plain_every_s=100)
        monkeypatch.setattr(line, "_in_place", True)
        line.show("step 1")
        line.show("step 2")
    assert lines_of(run) == ["step 1"]


def test_files_are_bounded_and_the_first_and_the_newest_stay(run, monkeypatch):
    monkeypatch.setattr(log_file, "MOST_FILE_BYTES", 100)
    file = LogFile(run, agent_writer("a"))
    for number in range(100):
        file.write(f"line {number}, which has a number")
    file.write("x" * 1000)
    file.close()
    LogFile(run, agent_writer("a-b")).close()
    paths = sorted(run.logs.iterdir())
    assert len(paths) == MOST_FILES
    assert all(path.stat().st_size <= 100 for path in paths)
    lines = lines_of(run)
    assert lines[0] == "line 0, which has a number"
    assert lines[-2] == "line 99, which has a number"
    assert set(lines[-1]) == {"x"}


def test_lines_wait_until_the_folder_is_that_of_the_run(run):
    file = LogFile(run, "a-agent", run_id="ab12")
    file.write("one")
    run.id.write_text("cd34\n")
    file.write("two")
    assert not run.logs.exists()
    run.id.write_text("ab12\n")
    file.write("three")
    file.close()
    file.write("too late")
    assert lines_of(run) == ["one", "two", "three"]


def test_a_disk_that_refuses_stops_nothing(run):
    run.logs.touch()  # no folder can be made here
    file = LogFile(run, "launcher")
    file.write("one")
    run.logs.unlink()
    file.write("two")
    file.close()
    assert lines_of(run) == ["one", "two"]


def test_a_disk_that_hangs_holds_up_nothing(run, monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(log_file, "LAST_S", 0.01)
    monkeypatch.setattr(LogFile, "_append", lambda self, line: hangs.wait())
    file = LogFile(run, "launcher")
    for number in range(2 * MOST_WAITING_LINES):
        file.write(f"line {number}")
    file.write_last("the last")
    file.close()
    hangs.set()


def test_any_host_name_gives_a_name_of_a_file(run):
    for host in ("fe80::1", "../x", "ä b"):
        file = LogFile(run, rank_writer(host, 0))
        file.write("line")
        file.close()
    assert all(LOG_NAME.fullmatch(path.name) for path in run.logs.iterdir())
    assert len(list(run.logs.iterdir())) == 3
