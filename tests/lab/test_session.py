"""A lab for one command: down afterwards, however the command or the lab's own process ends."""

import os
import signal
import sys
from pathlib import Path

import pytest
from labs import new_name, skip_without_lab
from processes import dragoman, start_dragoman

from dragoman.lab import lab_names

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _lab_needed():
    skip_without_lab()


@pytest.fixture(autouse=True)
def _signals_heard():
    """In the background, or under nohup, tests ignore some, and so would what they start."""
    hears = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in hears.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def is_gone(hosts):
    return not Path(hosts).parent.exists() and Path(hosts).parent.name not in lab_names()


def test_a_command_finds_the_host_list_and_its_exit_code_is_ours():
    script = 'cat $DRAGOMAN_LAB_HOSTS; test "$DRAGOMAN_LAB_HOSTS" = "$0" && echo $0; exit 7'
    done = dragoman(
        "lab", "run", "--nodes", "2", "--rate", "1gbit", "--", "sh", "-c", script, "{hosts}"
    )
    assert done.returncode == 7
    assert 'name = "node2"' in done.stdout
    assert is_gone(done.stdout.splitlines()[-1])


def test_a_lab_has_the_name_that_it_is_given_and_another_s_is_left_alone():
    name = new_name()
    again = f"{sys.executable} -m dragoman lab run --name {name} --nodes 1 -- true"
    done = dragoman(
        *("lab", "run", "--nodes", "1", "--name", name, "--", "sh", "-c"),
        f"{again}; echo $?; ls -d {{hosts}}",
    )
    code, hosts = done.stdout.split()
    assert (code, Path(hosts).parent.name) == ("2", name)
    assert f"lab {name} is already up" in done.stderr
    assert is_gone(hosts)


def test_the_readme_s_command_runs_with_nothing_on_the_path():
    bare = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    bare |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = dragoman(*("lab", "run", "--nodes", "1", "--", "dragoman", "train", "--help"), env=bare)
    assert done.returncode == 0, done.stderr
    assert "dragoman train" in done.stdout


def test_a_command_that_does_not_exist_is_named():
    done = dragoman("lab", "run", "--nodes", "1", "--", "no-such-command")
    assert done.returncode == 2
    assert done.stderr == "error: no-such-command: cannot be run (No such file or directory)\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_lab_is_taken_down(number):
    script = (
        f"trap 'echo told; exit 9' {number.name[3:]}; echo {{hosts}}; while :; do sleep 0.05; done"
    )
    run = start_dragoman("lab", "run", "--nodes", "1", "--", "sh", "-c", script)
    hosts = run.stdout.readline().strip()
    run.send_signal(number)
    rest, errors = run.communicate()
    assert (rest, errors, run.returncode) == ("told\n", "", 9)
    assert is_gone(hosts)


def test_ctrl_c_ends_command_and_lab():
    script = "trap 'exit 4' INT; echo {hosts}; while :; do sleep 0.05; done"
    run = start_dragoman(
        "lab", "run", "--nodes", "1", "--", "sh", "-c", script, start_new_session=True
    )
    hosts = run.stdout.readline().strip()
    os.killpg(run.pid, signal.SIGINT)
    run.communicate()
    assert run.returncode == 4
    assert is_gone(hosts)


def test_a_command_that_does_not_listen_is_killed_by_a_second_signal():
    script = "trap 'echo no' TERM; echo {hosts}; while :; do sleep 0.05; done"
    run = start_dragoman("lab", "run", "--nodes", "1", "--", "sh", "-c", script)
    hosts = run.stdout.readline().strip()
    run.terminate()
    assert run.stdout.readline() == "no\n"
    run.terminate()
    run.communicate()
    assert run.returncode == 128 + signal.SIGKILL
    assert is_gone(hosts)


def test_a_signal_before_the_command_has_started_takes_back_what_was_made():
    def runs():
        return {name for name in lab_names() if name.startswith("run-")}

    before = runs()
    run = start_dragoman("lab", "run", "--nodes", "20", "--", "echo", "started")
    while not (made := runs() - before) and run.poll() is None:
        pass
    run.terminate()
    output, _ = run.communicate()
    assert (output, run.returncode) == ("", 128 + signal.SIGTERM)
    assert not made & runs()
