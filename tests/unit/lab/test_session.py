import signal
import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.lab import session
from dragoman.lab.lab import Lab
from dragoman.lab.layout import Layout

LAB = Lab(Layout("lab", IPv4Network("10.77.3.0/24"), 2, "root"))


def test_the_command_finds_the_host_list_in_its_words_and_in_a_variable(tmp_path):
    told = tmp_path / "told"
    program = (
        "import os, sys, pathlib\n"
        f"pathlib.Path({str(told)!r}).write_text(sys.argv[1] + os.environ['DRAGOMAN_LAB_HOSTS'])"
    )
    process = session._start([sys.executable, "-c", program, "--hosts={hosts}"], LAB)
    assert process.wait() == 0
    assert told.read_text() == f"--hosts={LAB.hosts}{LAB.hosts}"


def test_dragoman_and_python_are_found_with_nothing_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with session._start(["dragoman", "--help"], LAB) as process:
        assert process.wait() == 0
    told = tmp_path / "told"
    program = f"import pathlib, sys; pathlib.Path({str(told)!r}).write_text(sys.executable)"
    with session._start(["python", "-c", program], LAB) as process:
        assert process.wait() == 0
    assert Path(told.read_text()).parent == Path(sys.executable).parent


def test_a_clone_that_was_never_installed_runs_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session.shutil, "which", lambda name, path: None)
    with session._start(["dragoman", "--help"], LAB) as process:
        assert process.args[:3] == [sys.executable, "-m", "dragoman"]


def test_a_path_that_has_the_folder_keeps_its_order():
    assert session.path_with(Path("/venv/bin"), "/bin:/venv/bin") == "/bin:/venv/bin"
    assert session.path_with(Path("/venv/bin"), "/bin:/sbin") == "/venv/bin:/bin:/sbin"


def test_a_command_that_cannot_be_run_is_named():
    with pytest.raises(UserError, match="no-such-program"):
        session._start(["no-such-program"], LAB)


def test_a_signal_before_there_is_a_command_ends_with_the_exit_code_of_a_shell():
    assert session.Stopped(signal.SIGTERM).exit_code == 143


def test_what_nohup_has_silenced_stays_silent():
    program = (
        "import signal\n"
        "from dragoman.lab.session import _handle\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell may ignore it
        "before = _handle(print)\n"
        "assert set(before) == {signal.SIGINT, signal.SIGTERM}\n"
        "assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN\n"
        "assert signal.getsignal(signal.SIGTERM) is print\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
