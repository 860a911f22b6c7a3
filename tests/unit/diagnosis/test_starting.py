from dataclasses import replace

import pytest
from unit.diagnosis.learning_run import learned

from dragoman.diagnosis.commands import train_command
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.run.record import Start
from dragoman.diagnosis.starting import with_start

FALLING = [3.0, 2.5, 2.2, 2.0]
LINE = "checkpoints.every_steps = 50"


def run_of(tmp_path, launcher="", ended=""):
    run = learned(tmp_path / "run", FALLING, ended=ended).facts
    return replace(run, record=replace(run.record, start=Start([], launcher, [])))


def words(run, command):
    return with_start(run, Advice("Do it.", command)).text


@pytest.mark.parametrize(("launcher", "how"), [("dragoman", "Ctrl-C"), ("srun", "scancel")])
def test_a_run_in_progress_is_stopped_before_it_is_started_again(tmp_path, launcher, how):
    run = run_of(tmp_path, launcher)
    assert how in words(run, train_command(run, {"evaluation.beam": 2}))


def test_what_only_looks_stops_nothing(tmp_path):
    assert words(run_of(tmp_path), "ssh a nvidia-smi") == "Do it."


def test_a_run_that_has_ended_needs_no_stop(tmp_path):
    run = run_of(tmp_path, ended="done")
    assert words(run, train_command(run, {"training.steps": 9000})) == "Do it."


def test_a_line_of_the_recipe_counts_from_the_next_start(tmp_path):
    assert "next start" in words(run_of(tmp_path), LINE)


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "torchrun"])
def test_another_launcher_is_named(tmp_path, launcher):
    run = run_of(tmp_path, launcher, ended="done")
    assert f"with {launcher}" in words(run, "training.steps = 9000")
    assert "--run" not in words(run, "training.steps = 9000")
    assert f"--run {tmp_path / 'run'}-2" in words(run, "model.dropout = 0.3")
    assert f"with {launcher}" in words(run, train_command(run, {}))
