"""Evaluations beside training, by real processes: the same scores, whatever happens to whom."""

import os
import signal
import subprocess
from contextlib import suppress

import psutil
import pytest
from processes import dragoman, losses, start_dragoman, wait_for_step, wait_until
from recorded import events
from safetensors.numpy import load_file

from dragoman.checkpoints.names import MODEL, STATE, linked_step
from dragoman.cli.train import PREEMPTED
from dragoman.evaluation.beside import PROGRAM
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import AttemptEnded, Evaluated, Incident

pytestmark = pytest.mark.timeout(600)  # several runs, each of which imports torch

BESIDE = ["--set", "evaluation.beside=true"]
SETTINGS = ["--set", "training.steps=40", "--set", "evaluation.every_steps=15"]


def side_processes(pid: int) -> list[psutil.Process]:
    """Those of a trainer, or of the workers below it."""
    found = []
    with suppress(psutil.Error):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                if PROGRAM in process.cmdline():
                    found.append(process)
    return found


def is_running(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def scores(run):
    """Step -> what its evaluation found; of those that were scored."""
    return {
        event.step: (event.bleu, event.chrf, event.validation_loss, event.is_best, event.samples)
        for event in events(RunDir(run), Evaluated)
        if event.bleu is not None
    }


def state_of(run):
    return read_json(run / "checkpoints" / "latest" / STATE)["run"] | {"elapsed_s": 0}


def same_weights(one, other):
    first, second = (load_file(each / "checkpoints" / "latest" / MODEL) for each in (one, other))
    return first.keys() == second.keys() and all((first[k] == second[k]).all() for k in first)


def assert_same_run(run, inline):
    assert scores(run) == scores(inline)
    assert state_of(run) == state_of(inline)
    whole = losses(inline)
    # An attempt that was killed may have gone further than the run that is compared.
    repeated = {step: loss for step, loss in losses(run).items() if step <= max(whole)}
    assert repeated.items() <= whole.items()
    assert same_weights(run, inline)
    best = [linked_step(each / "checkpoints", "best") for each in (run, inline)]
    assert best[0] == best[1] is not None


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.cluster)])
def test_a_run_is_the_same_inline_and_beside(digits, tmp_path, workers):
    inline, run = tmp_path / "inline", tmp_path / "run"
    command = ["train", digits, "--workers", workers, *SETTINGS]
    for folder, more in ((inline, []), (run, BESIDE)):
        done = dragoman(*command, "--run", folder, *more)
        assert done.returncode == 0, done.stderr
    assert_same_run(run, inline)
    arrived = {e.step: e.arrived_step for e in events(RunDir(run), Evaluated) if e.bleu is not None}
    assert arrived.keys() == {15, 30, 40}
    assert 15 < arrived[15] <= 30 < arrived[30] <= 40
    assert arrived[40] is None
    assert events(RunDir(run), Incident) == []


@pytest.mark.cluster
def test_two_ranks_end_a_run_alike_when_patience_is_over(digits, tmp_path):
    run = tmp_path / "run"
    done = dragoman(
        *("train", digits, "--run", run, "--workers", 2, *BESIDE),
        *("--set", "training.steps=90", "--set", "training.patience=2"),
        *("--set", "evaluation.every_steps=6", "--set", "schedule.peak=1e-9"),
    )
    assert done.returncode == 0, done.stderr
    endings = events(RunDir(run), AttemptEnded)
    assert [(ending.cause, ending.step) for ending in endings] == [("patience", 24)] * 2
    assert [found[3] for _, found in sorted(scores(run).items())] == [True, False, False, False]


@pytest.mark.cluster
def test_a_killed_process_costs_no_score(digits, tmp_path):
    """Its evaluation is made by torch, and those after it are inline."""
    inline, run = tmp_path / "inline", tmp_path / "run"
    settings = ["--set", "training.steps=130", "--set", "evaluation.every_steps=60"]
    assert dragoman("train", digits, "--run", inline, *settings).returncode == 0
    process = start_dragoman("train", digits, "--run", run, *settings, *BESIDE)
    wait_until(lambda: side_processes(process.pid))
    side_processes(process.pid)[0].kill()
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors
    assert_same_run(run, inline)
    (incident,) = events(RunDir(run), Incident)
    assert (incident.category, incident.ranks) == ("evaluation", (0,))
    assert "was ended by SIGKILL" in incident.message
    arrived = [e.arrived_step for e in events(RunDir(run), Evaluated)]
    assert arrived == [None, 120, None, None]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.cluster)])
def test_a_killed_trainer_leaves_no_process_and_its_run_goes_on(digits, tmp_path, workers):
    run = tmp_path / "run"
    settings = ["--set", "training.steps=100000", "--set", "evaluation.every_steps=40"]
    settings += ["--skip-check"]
    command = ["train", digits, "--run", run, "--workers", workers]
    process = start_dragoman(*command, *settings, *BESIDE)
    wait_until(lambda: side_processes(process.pid))
    (side,) = side_processes(process.pid)
    trainer = side.parent()
    trainer.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not is_running(side))
    assert state_of(run)["pending"]["step"] == 40
    first = state_of(run)["step"]
    shorter = ["--set", f"training.steps={first + 3}", "--set", "evaluation.every_steps=40"]
    done = dragoman(*command, *shorter, *BESIDE)
    assert done.returncode == 0, done.stderr
    inline = tmp_path / "inline"
    done = dragoman("train", digits, "--run", inline, "--workers", workers, *shorter)
    assert done.returncode == 0, done.stderr
    assert_same_run(run, inline)
    assert {40, first + 3} <= scores(run).keys()


@pytest.mark.cluster
def test_a_signal_to_all_processes_stops_the_run_and_the_next_one_scores(digits, tmp_path):
    """Job systems send it so; the process beside leaves it to the trainer."""
    run = tmp_path / "run"
    settings = ["--set", "evaluation.every_steps=40", *BESIDE, "--skip-check"]
    command = ["train", digits, "--run", run]
    process = start_dragoman(*command, "--set", "training.steps=100000", *settings)
    wait_until(lambda: side_processes(process.pid))
    sides = side_processes(process.pid)
    for number in [*(side.pid for side in sides), process.pid]:
        os.kill(number, signal.SIGTERM)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == PREEMPTED, output + errors
    wait_until(lambda: not any(map(is_running, sides)))
    stopped = state_of(run)
    assert stopped["pending"]["step"] == (stopped["step"] - 1) // 40 * 40
    last = f"training.steps={stopped['step'] + 3}"
    done = dragoman(*command, "--set", last, *settings)
    assert done.returncode == 0, done.stderr
    inline = tmp_path / "inline"
    done = dragoman(
        *("train", digits, "--run", inline, "--set", last, "--set", "evaluation.every_steps=40")
    )
    assert done.returncode == 0, done.stderr
    assert_same_run(run, inline)


@pytest.mark.cluster
def test_steps_go_on_while_a_checkpoint_is_scored_and_wait_at_the_next_evaluation(digits, tmp_path):
    inline, run = tmp_path / "inline", tmp_path / "run"
    settings = ["--set", "training.steps=130", "--set", "evaluation.every_steps=60"]
    assert dragoman("train", digits, "--run", inline, *settings).returncode == 0
    process = start_dragoman("train", digits, "--run", run, *settings, *BESIDE)
    wait_until(lambda: side_processes(process.pid))
    (side,) = side_processes(process.pid)
    side.suspend()
    wait_for_step(run, 120)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    assert max(losses(run)) == 120
    assert scores(run) == {}
    side.resume()
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors
    assert_same_run(run, inline)
    late = next(e for e in events(RunDir(run), Evaluated) if e.step == 60 and e.bleu is not None)
    assert late.arrived_step == 120
    assert late.seconds > 0


@pytest.mark.cluster
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_while_training_waits_for_a_score_leaves_both_evaluations_to_the_next_attempt(
    digits, tmp_path, workers
):
    inline, run = tmp_path / "inline", tmp_path / "run"
    settings = ["--set", "training.steps=130", "--set", "evaluation.every_steps=60"]
    command = ["train", digits, "--workers", workers, *settings]
    process = start_dragoman(*command, "--run", run, *BESIDE)
    wait_until(lambda: side_processes(process.pid))
    (side,) = side_processes(process.pid)
    side.suspend()
    wait_for_step(run, 120)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == PREEMPTED, output + errors
    wait_until(lambda: not is_running(side))
    stopped = state_of(run)
    assert (stopped["step"], stopped["pending"]["step"], stopped["evaluated_step"]) == (120, 60, 60)
    for folder, more in ((run, BESIDE), (inline, [])):
        done = dragoman(*command, "--run", folder, *more)
        assert done.returncode == 0, done.stderr
    assert_same_run(run, inline)
