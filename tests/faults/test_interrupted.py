"""Killed at any moment, a run goes on as if nothing had happened: bit for bit on CPU."""

import json
import os
import shutil
import signal
import sys

import pexpect
import pytest
from digits_language import write_recipe
from injected import fault
from processes import ENDLESS, dragoman, losses, sentence, start_dragoman, wait_for_step
from safetensors.numpy import load_file

pytestmark = pytest.mark.timeout(600)  # up to six runs, each of which imports torch


def weights(run):
    return load_file(run / "checkpoints" / "latest" / "model.safetensors")


def same(one, other):
    return one.keys() == other.keys() and all((one[k] == other[k]).all() for k in one)


@pytest.fixture(scope="module")
def left_in_peace(tmp_path_factory):
    """Makes the run of so many workers that nothing happens to; made once, never changed."""
    runs = {}

    def make(workers):
        if workers not in runs:
            folder = tmp_path_factory.mktemp("peace")
            runs[workers] = folder / "run"
            recipe = write_recipe(folder)
            done = dragoman("train", recipe, "--run", runs[workers], "--workers", workers)
            assert done.returncode == 0, done.stderr
        return runs[workers]

    return make


def test_a_run_killed_at_two_steps_ends_with_the_same_losses_and_weights(digits, tmp_path):
    longer = ["--set", "training.steps=60", "--set", "evaluation.every_steps=20"]
    undisturbed = dragoman("train", digits, "--run", tmp_path / "undisturbed", *longer)
    assert undisturbed.returncode == 0, undisturbed.stderr

    run = tmp_path / "killed"
    kills = (17, 41)
    for step in kills:
        process = start_dragoman("train", digits, "--run", run, *longer)
        wait_for_step(run, step)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = dragoman("train", digits, "--run", run, *longer)
    assert done.returncode == 0, done.stderr

    recorded, expected = losses(run), losses(tmp_path / "undisturbed")
    assert recorded.items() <= expected.items()
    # Fast steps are written in groups, and a kill takes the last group along, of which some steps
    # may be in a checkpoint already and are not repeated.
    assert len(recorded) >= len(expected) - 5 * len(kills)
    assert same(weights(run), weights(tmp_path / "undisturbed"))


@pytest.mark.usefixtures("hang_up")
def test_a_terminal_that_is_closed_lets_the_run_save(digits, tmp_path):
    run = tmp_path / "run"
    arguments = ["-m", "dragoman", "train", digits, "--run", run, *ENDLESS]
    child = pexpect.spawn(sys.executable, list(map(str, arguments)), timeout=100)
    child.expect(r"step \d+/")  # reads on until then, or the terminal would be full
    os.close(child.child_fd)
    child.closed, child.child_fd = True, -1
    _, status = os.waitpid(child.pid, 0)
    child.terminated = True
    assert os.waitstatus_to_exitcode(status) == 75
    found = json.loads((run / "status.json").read_text())
    assert found["state"] == "preempted"
    assert "SIGHUP" in found["reason"]
    (saved,) = (run / "checkpoints").glob(f"step-*{found['step']}")
    assert saved.samefile(run / "checkpoints" / "latest")


@pytest.mark.parametrize(
    "settings",
    [
        ("optimizer.kind=schedule-free", "schedule.kind=constant"),
        ("optimizer.average_decay=0.9",),
        ("optimizer.kind=muon",),
    ],
    ids=["schedule-free", "average", "muon"],
)
@pytest.mark.cluster
def test_a_killed_run_goes_on_bit_for_bit_with_every_optimizer(digits, tmp_path, settings):
    changes = ["training.steps=40", "evaluation.every_steps=15", "checkpoints.every_steps=4"]
    changes = [word for change in (*changes, *settings) for word in ("--set", change)]
    run, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    assert dragoman("train", digits, "--run", undisturbed, *changes).returncode == 0
    process = start_dragoman("train", digits, "--run", run, *changes)
    wait_for_step(run, 17)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = dragoman("train", digits, "--run", run, *changes)
    assert done.returncode == 0, done.stderr
    assert losses(run).items() <= losses(undisturbed).items()
    assert same(weights(run), weights(undisturbed))
    states = [
        load_file(each / "checkpoints" / "latest" / "optimizer.safetensors")
        for each in (run, undisturbed)
    ]
    assert same(*states)
    assert set(states[0]) != set()


@pytest.mark.parametrize(
    "mode",
    [
        ("sync.mode=local", "sync.local_steps=4"),
        ("sync.mode=diloco", "sync.local_steps=6"),
        ("sync.mode=bf16",),
        ("sync.mode=accumulate", "sync.accumulate=2"),
    ],
    ids=["local", "diloco", "bf16", "accumulate"],
)
@pytest.mark.cluster
def test_a_rank_killed_between_two_synchronizations_or_in_one_changes_nothing(
    digits, tmp_path, mode
):
    """Inside a window, then while weights are averaged, or where there is none, in the update."""
    settings = [word for change in mode for word in ("--set", change)]
    run, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    command = ["train", digits, "--workers", 2, *settings]
    assert dragoman(*command, "--run", undisturbed).returncode == 0
    has_windows = "local_steps" in mode[-1]
    for rank, step, phase in (
        (1, 6, "backward"),
        (0, 12 if has_windows else 9, "synchronization" if has_windows else "optimizer"),
    ):
        broken = dragoman(*command, "--run", run, env=fault(tmp_path, rank, step, phase))
        assert broken.returncode == 1, f"{phase}: {broken.stdout}{broken.stderr}"
        assert "was ended by SIGKILL" in broken.stderr, phase
    done = dragoman(*command, "--run", run)
    assert done.returncode == 0, done.stderr
    assert losses(run) == losses(undisturbed)
    assert same(weights(run), weights(undisturbed))
    states = [
        load_file(each / "checkpoints" / "latest" / "optimizer.safetensors")
        for each in (run, undisturbed)
    ]
    assert same(*states)


def test_a_run_of_one_mode_is_not_continued_in_another(digits, tmp_path):
    command = ["train", digits, "--run", tmp_path / "run"]
    first = dragoman(*command, "--set", "training.steps=4", "--set", "sync.mode=local")
    assert first.returncode == 0, first.stderr
    before = weights(tmp_path / "run")
    said = sentence(dragoman(*command), code=2)
    assert "was started with sync.mode = 'local', and now it is 'fp32' (and 7 more keys)" in said
    assert same(weights(tmp_path / "run"), before)


@pytest.mark.cluster
def test_a_rank_killed_in_any_phase_changes_nothing(digits, left_in_peace, tmp_path):
    """One run, killed again and again."""
    run = tmp_path / "killed"
    workers = ["--workers", 2, "--set", "evaluation.every_steps=6"]
    phases = ["backward", "optimizer", "checkpoint", "evaluation"]
    # Of the last two: when these are due, and none before it can still be in flight.
    steps = [3, 7, 10, 18]
    for rank, (phase, step) in enumerate(zip(phases, steps, strict=True)):
        broken = dragoman(
            *("train", digits, "--run", run, *workers),
            env=fault(tmp_path, rank % 2, step, phase),
        )
        assert broken.returncode == 1, f"{phase}: {broken.stdout}{broken.stderr}"
        assert "was ended by SIGKILL" in broken.stderr, phase
    done = dragoman("train", digits, "--run", run, *workers)
    assert done.returncode == 0, done.stderr
    assert losses(run) == losses(left_in_peace(2))
    assert same(weights(run), weights(left_in_peace(2)))


def test_two_workers_stopped_and_started_again_end_with_the_same_losses(
    digits, left_in_peace, tmp_path
):
    run = tmp_path / "halves"
    for steps in (9, 20):
        half = dragoman(
            *("train", digits, "--run", run, "--workers", 2, "--set", f"training.steps={steps}")
        )
        assert half.returncode == 0, half.stderr
    assert losses(run) == losses(left_in_peace(2))
    assert same(weights(run), weights(left_in_peace(2)))


def test_a_torn_newest_checkpoint_costs_its_steps_and_nothing_more(digits, left_in_peace, tmp_path):
    run = tmp_path / "torn"
    assert dragoman("train", digits, "--run", run, "--set", "training.steps=15").returncode == 0
    os.truncate(run / "checkpoints" / "step-00000015" / "optimizer.safetensors", 1000)
    again = dragoman("train", digits, "--run", run)
    assert again.returncode == 0, again.stderr
    assert "step-00000015 is skipped" in again.stderr
    assert "going on after step 10" in again.stdout
    assert losses(run) == losses(left_in_peace(1))


def test_a_finished_run_started_again_says_so_and_changes_nothing(digits, left_in_peace, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(left_in_peace(1), run, symlinks=True)
    before = losses(run), weights(run)
    again = dragoman("train", digits, "--run", run)
    assert again.returncode == 0
    assert "is complete: training.steps = 20 are done" in again.stdout
    assert losses(run) == before[0]
    assert same(weights(run), before[1])
