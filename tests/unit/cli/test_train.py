import json
import os
import signal
import subprocess
import sys

import pytest
from processes import dragoman, sentence

from dragoman.cli.train import PREEMPTED

pytestmark = pytest.mark.timeout(180)


def test_the_same_command_resumes_and_a_finished_run_stays_as_it_is(trained):
    recipe, run = trained
    resumed = dragoman("train", recipe, "--run", run, "--set", "training.steps=4")
    again = dragoman("train", recipe, "--run", run, "--set", "training.steps=4")

    assert (resumed.returncode, again.returncode) == (0, 0)
    assert json.loads((run / "status.json").read_text())["step"] == 4
    assert len(list((run / "events").iterdir())) == 3


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
