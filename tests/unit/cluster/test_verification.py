"""What is compared, on runs written here; tests/faults has the command on real ones."""

import math
import subprocess
import sys

import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file

from dragoman.cluster import verification
from dragoman.cluster.verification import (
    LEAST_STEPS,
    Compared,
    Verification,
    compare,
    kill_step,
    shortened,
)
from dragoman.config import parse_config
from dragoman.errors import RunError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Stamped, StepDone, to_line

STEPS = 6


def write_run(root, losses, tensors=None, attempt=1):
    """`losses`: step -> loss. The checkpoint is that of the last step of all."""
    run = RunDir(root)
    run.events.mkdir(parents=True, exist_ok=True)
    lines = [
        to_line(Stamped(0.0, 0.0, StepDone(step, 0.1, loss, 100, 1e-3, 1.0, True, 1.0)))
        for step, loss in losses.items()
    ]
    run.events_of(attempt, 0).write_text("".join(lines), encoding="utf-8")
    folder = run.checkpoints / f"step-{STEPS:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"w": np.ones(3, np.float32)} | (tensors or {}), folder / "model.safetensors")
    save_file({"w|step": np.zeros((), np.float32)}, folder / "optimizer.safetensors")
    return run


def straight_losses():
    return {step: 1 / (step + 2) for step in range(1, STEPS + 1)}


@pytest.fixture
def straight(tmp_path):
    return write_run(tmp_path / "straight", straight_losses())


def test_equal_runs_are_equal_whichever_attempt_has_recorded_a_step(straight, tmp_path):
    losses = straight_losses()
    write_run(tmp_path / "other", {step: losses[step] for step in range(1, 5)})
    other = write_run(tmp_path / "other", {step: losses[step] for step in range(3, 7)}, attempt=2)
    assert compare(straight, other, STEPS) == Compared(STEPS, 2, [])


def test_the_last_bit_of_a_loss_is_a_difference(straight, tmp_path):
    losses = straight_losses()
    losses |= {step: math.nextafter(losses[step], 1.0) for step in (4, 5)}
    (difference,) = compare(straight, write_run(tmp_path / "other", losses), STEPS).differences
    assert difference.startswith("2 of 6 losses, first that of step 4 (0.1666")


def test_a_step_that_the_killed_attempt_did_otherwise_is_a_difference_too(straight, tmp_path):
    write_run(tmp_path / "other", straight_losses() | {5: 9.0})
    other = write_run(tmp_path / "other", straight_losses(), attempt=2)
    assert len(compare(straight, other, STEPS).differences) == 1


def test_a_loss_that_is_not_a_number_equals_itself(tmp_path):
    runs = [
        write_run(tmp_path / name, straight_losses() | {2: math.nan}) for name in ("one", "two")
    ]
    assert compare(*runs, STEPS).differences == []


def test_steps_that_are_missing_are_a_difference(straight, tmp_path):
    losses = {step: loss for step, loss in straight_losses().items() if step != 3}
    (difference,) = compare(straight, write_run(tmp_path / "other", losses), STEPS).differences
    assert difference == "1 steps were not repeated, first step 3"


@pytest.mark.parametrize(
    "tensors",
    [
        {"w": np.nextafter(np.ones(3, np.float32), 2)},
        {"w": np.ones((3, 1), np.float32)},
        {"w": np.ones(3, np.float64)},
        {"more": np.ones(1, np.float32)},
    ],
    ids=["value", "shape", "type", "name"],
)
def test_tensors_are_compared_with_shape_and_type(straight, tmp_path, tensors):
    other = write_run(tmp_path / "other", straight_losses(), tensors)
    (difference,) = compare(straight, other, STEPS).differences
    assert "1 of " in difference
    assert f"among them {next(iter(tensors))}" in difference


def test_a_straight_run_with_gaps_in_its_records_proves_nothing(straight, tmp_path):
    with pytest.raises(RunError, match="holds 6 of 7 steps"):
        compare(straight, straight, 7)


@pytest.mark.parametrize("steps", [LEAST_STEPS, 9, 24, 1000])
def test_a_run_is_killed_after_a_checkpoint_and_before_its_end(digits_config, steps):
    every = shortened(digits_config, steps).checkpoints.every_steps
    drawn = {kill_step(steps, seed) for seed in range(200)}
    assert every < min(drawn)
    assert max(drawn) < steps
    assert len(drawn) > 1
    assert kill_step(steps, 7) == kill_step(steps, 7)


def test_the_shortened_recipe_trains_the_same_for_a_few_steps(digits):
    text = digits.read_text(encoding="utf-8").replace(
        "steps = 20\n", "epochs = 3\nhours = 1.0\n", 1
    )
    config = parse_config(text, "x", ["training.patience=2", "preemption.cloud=aws"])
    short = shortened(config, 24)
    assert (short.training.steps, short.training.epochs) == (24, None)
    assert (short.training.hours, short.training.patience) == (None, None)
    assert short.preemption.cloud == "none"
    for section in ("data", "model", "schedule", "optimizer", "tokenizer"):
        assert getattr(short, section) == getattr(config, section)
    assert short.training.tokens_per_update == config.training.tokens_per_update


def test_the_verdict_is_a_sentence():
    assert Verification(17, 15, "cpu", Compared(24, 58, [])).sentence == (
        "equal: 24 losses and 58 tensors, killed at step 17, resumed from step 15"
    )
    unequal = Verification(17, 15, "cuda:0", Compared(24, 58, ["3 of 24 losses"]))
    assert unequal.sentence.startswith("unequal: 3 of 24 losses; killed at step 17")
    assert unequal.sentence.endswith("equal bits are promised on CPU, and this was cuda:0")


def test_a_run_that_failed_is_quoted(tmp_path):
    log = tmp_path / "log"
    log.write_text("step 1\nerror: the device is gone\n\n")
    assert verification._failure_message(log, 2) == "the device is gone"
    assert verification._failure_message(log, -9) == "the run was ended by SIGKILL"
    log.write_text("Traceback\nKeyError: 3\n\n")
    assert verification._failure_message(log, 1) == "KeyError: 3"


def test_a_kill_reaches_workers_in_sessions_of_their_own_and_lets_none_say_a_word(tmp_path):
    """As the launcher, its agent and a worker that would save when it is asked to end."""
    said = tmp_path / "said"
    worker = (
        "import signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: open({str(said)!r}, 'w').close())\n"
        "print('ready', flush=True); time.sleep(100)"
    )
    parent = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', sys.argv[1], *sys.argv[2:]], start_new_session=True)"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", parent, parent, worker], stdout=subprocess.PIPE
    )
    with launcher:
        assert launcher.stdout.readline() == b"ready\n"
        family = psutil.Process(launcher.pid).children(recursive=True)
        assert len(family) == 2
        verification._kill(launcher)
    assert launcher.returncode == -9
    assert not any(member.is_running() for member in family)
    assert not said.exists()
