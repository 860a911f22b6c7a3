import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from processes import dragoman, sentence

from dragoman.cli.train import PREEMPTED, _answered, _outlook
from dragoman.errors import NotStartedError
from dragoman.rundir import RunDir
from dragoman.training.manifest import read_manifest

pytestmark = pytest.mark.timeout(180)


def test_the_same_command_resumes_and_a_finished_run_stays_as_it_is(trained):
    recipe, run = trained
    resumed = dragoman("train", recipe, "--run", run, "--set", "training.steps=4")
    again = dragoman("train", recipe, "--run", run, "--set", "training.steps=4")

    assert (resumed.returncode, again.returncode) == (0, 0)
    assert json.loads((run / "status.json").read_text())["step"] == 4
    assert len(list((run / "events").iterdir())) == 3
    logs = sorted((run / "logs").iterdir())
    assert [path.name.split("-rank-0000-")[0] for path in logs] == [socket.gethostname()] * 3
    assert "finished at step 2" in logs[0].read_text()
    assert "going on after step 2" in logs[1].read_text()
    assert "is complete" in logs[2].read_text()
    commands = [attempt["command"] for attempt in read_manifest(RunDir(run)).attempts]
    assert commands[1][:3] == ["dragoman", "train", str(recipe)]


def test_a_signal_saves_and_asks_to_be_called_again(trained):
    recipe, run = trained
    command = [sys.executable, "-m", "dragoman", "train", str(recipe), "--run", str(run)]
    process = subprocess.Popen(
        [*command, "--set", "training.steps=1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout
    for line in process.stdout:
        if "step " in line and "/1,000,000" in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)

    status = json.loads((run / "status.json").read_text())
    assert (process.returncode, status["state"]) == (PREEMPTED, "preempted")
    assert status["step"] > 2
    assert (run / "checkpoints" / f"step-{status['step']:08d}").is_dir()


def test_more_workers_than_cores_are_refused_before_anything_is_written(trained, tmp_path):
    recipe, _ = trained
    refused = dragoman("train", recipe, "--run", tmp_path / "new", "--workers", 1000)
    assert "--oversubscribe" in sentence(refused, 2)
    assert not (tmp_path / "new").exists()


@pytest.fixture
def typed(monkeypatch):
    """Types into this process's standard input, which is then closed."""

    def type_(text):
        ours, theirs = os.pipe()
        os.write(theirs, text.encode())
        os.close(theirs)
        stream = os.fdopen(ours)
        monkeypatch.setattr(sys, "stdin", stream)
        return stream

    return type_


@pytest.mark.parametrize(
    ("text", "starts"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_only_a_yes_starts_a_run_that_was_asked_about(typed, text, starts):
    with typed(text):
        assert _answered("Start?", lambda: False) is starts


def test_asking_ends_when_the_user_interrupts(monkeypatch):
    ours, theirs = os.pipe()
    with os.fdopen(ours) as stream, os.fdopen(theirs, "w"):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(NotStartedError, match="stopped"):
            _answered("Start?", lambda: True)


def test_where_nobody_can_be_asked_a_run_is_refused_unless_it_was_confirmed(
    typed, digits_config, tmp_path
):
    run = RunDir(tmp_path)
    with typed("y\n"):
        refuses = _outlook(digits_config, run, None, yes=False)._confirm
        with pytest.raises(NotStartedError, match="too slow; add --yes") as refused:
            refuses("too slow", lambda: False)
        assert refused.value.exit_code == 3
        assert _outlook(digits_config, run, None, yes=True)._confirm("too slow", lambda: False)
