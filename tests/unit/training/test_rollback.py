"""Numbers that go wrong in a real run: skipped a few times, then back to a checkpoint."""

import dataclasses
import math
import os

import pytest
from processes import steps, wait_until
from recorded import events

from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.names import STATE, linked_step
from dragoman.config import parse_config
from dragoman.errors import DivergedError
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Incident,
    StepDone,
)
from dragoman.training import divergence
from dragoman.training.train import train
from dragoman.training.updater import Updater


@pytest.fixture
def poisoned(digits, tmp_path, monkeypatch):
    """Trains the digits with a loss that is not a number whenever `is_bad(step, rate)`."""
    now = {}
    real_gradients, real_update = Updater.gradients, Updater.update

    def run(is_bad, *overrides):
        config = parse_config(digits.read_text(), "x.toml", list(overrides))
        prepare(config)
        directory = RunDir(tmp_path / "run")

        def gradients(self, work, pieces=1):
            now["step"] = work.step
            now["tries"] = now.get("tries", {})
            now["tries"][work.step] = now["tries"].get(work.step, 0) + 1
            found = real_gradients(self, work, pieces)
            if is_bad(work.step, now["tries"][work.step]):
                for parameter in self.objective.parameters():
                    parameter.grad.fill_(math.nan)
                found = dataclasses.replace(found, norm=math.nan)
            return found

        monkeypatch.setattr(Updater, "gradients", gradients)
        return directory, lambda: train(config, directory)

    yield run
    monkeypatch.setattr(Updater, "gradients", real_gradients)
    monkeypatch.setattr(Updater, "update", real_update)


def rollbacks(run):
    return [event for event in events(run, Incident) if event.category == "rollback"]


def test_too_many_skips_lead_back_and_the_same_batches_follow_with_half_the_rate(poisoned):
    run, go = poisoned(
        lambda step, tries: 12 <= step <= 15 and tries == 1, "training.max_skipped=3"
    )
    assert go().state == "finished"
    skipped = [e.step for e in events(run, Incident) if e.category == "update-skipped"]
    assert skipped == [12, 13, 14]
    assert [(back.step, back.rate_factor) for back in rollbacks(run)] == [(15, 0.5)]
    done = steps(run.root)
    assert sorted(done) == list(range(1, 21))
    assert all(step.updated for step in done.values())


def test_a_run_goes_back_to_the_newest_checkpoint_from_before_the_trouble(poisoned):
    """Long before a window of losses is full, and with a checkpoint every five steps."""
    run, go = poisoned(
        lambda step, tries: 37 <= step <= 39 and tries == 1,
        *("training.max_skipped=2", "training.steps=42", "checkpoints.every_steps=5"),
        "evaluation.every_steps=100",
    )
    assert go().state == "finished"
    (back,) = rollbacks(run)
    assert back.step == 39
    # 35, unless the disk was still at the save before: steps go on, and it saves later.
    saved = [event.step for event in events(run, CheckpointSaved)]
    assert back.rollback_step in saved
    assert 0 < back.rollback_step < 37


def test_trouble_that_comes_again_leads_one_checkpoint_further_back(poisoned):
    run, go = poisoned(
        lambda step, tries: 37 <= step <= 39 and tries <= 3,
        *("training.max_skipped=2", "training.steps=42", "checkpoints.every_steps=5"),
        *("evaluation.every_steps=100", "checkpoints.keep_last=9"),
    )
    assert go().state == "finished"
    first, second, third = [back.rollback_step for back in rollbacks(run)]
    assert 36 >= first > second > third > 0


def test_checkpoints_of_steps_that_were_skipped_do_not_replace_the_one_before_them(poisoned):
    run, go = poisoned(
        lambda step, tries: 12 <= step <= 27 and tries == 1,
        *("training.max_skipped=15", "training.steps=28", "checkpoints.every_steps=5"),
        *("evaluation.every_steps=100", "checkpoints.keep_last=1"),
    )
    assert go().state == "finished"
    (back,) = rollbacks(run)
    assert back.step == 27
    assert 5 <= back.rollback_step < 12


@pytest.mark.parametrize("back_to", [10, 0], ids=["a checkpoint", "the initial weights"])
@pytest.mark.parametrize(
    "settings",
    [
        ("optimizer.average_decay=0.9",),
        ("optimizer.kind=schedule-free", "schedule.kind=constant"),
        ("optimizer.kind=muon",),
    ],
    ids=["average", "schedule-free", "muon"],
)
def test_a_rollback_takes_every_optimizer_back(poisoned, settings, back_to):
    """The first step after it has the loss it had before: nothing of later steps has stayed."""
    every = 5 if back_to else 100
    run, go = poisoned(
        lambda step, tries: 13 <= step <= 14 and tries == 1,
        *("training.max_skipped=1", "training.steps=16", f"checkpoints.every_steps={every}"),
        *("checkpoints.keep_last=9", "evaluation.every_steps=100", *settings),
    )
    assert go().state == "finished"
    (back,) = rollbacks(run)
    assert (back.rollback_step > 0, back.rate_factor) == (back_to > 0, 0.5)
    back_to = back.rollback_step  # a slow disk may have got it a step later
    once, again = [e.loss for e in events(run, StepDone) if e.step == back_to + 1]
    assert once == again
    first, second = [e.loss for e in events(run, StepDone) if e.step == back_to + 2]
    assert first != second  # the update before it had half the rate
    state = read_json(run.checkpoints / "step-00000016" / STATE)["run"]["optimizer"]
    made = state.get("k", state.get("updates", 16))
    assert made == 16


def test_after_too_many_rollbacks_the_run_stops_and_says_why(poisoned):
    run, go = poisoned(
        lambda step, tries: step >= 12, "training.max_skipped=2", "training.max_rollbacks=1"
    )
    with pytest.raises(DivergedError, match="not finite"):
        go()
    assert len(rollbacks(run)) == 1
    assert [(e.state, e.cause) for e in events(run, AttemptEnded)] == [("failed", "diverged")]


def test_a_run_of_auto_that_starts_over_can_be_resumed(poisoned):
    """Its checkpoints say how their ranks synchronize, without which none would be whole."""
    settings = ("sync.mode=auto", "training.max_skipped=0")
    run, go = poisoned(lambda step, tries: step == 2 and tries == 1, *settings, "training.steps=7")
    assert go().step == 7
    assert [rollback.rollback_step for rollback in rollbacks(run)] == [0]
    assert read_json(run.checkpoints / "latest" / STATE)["run"]["sync"]["mode"] == "fp32"
    _, go_on = poisoned(lambda step, tries: False, *settings, "training.steps=9")
    assert go_on().step == 9
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 8]


def test_a_torn_checkpoint_is_not_gone_back_to(poisoned):
    """What is later is removed then, and nothing would be left."""
    checkpoints, torn = [], []

    def is_bad(step, tries):
        if step == 14 and tries == 1:  # 13 was good, so this would be the one to go back to
            newest = all_checkpoints(checkpoints[0])[-1]
            os.truncate(newest.folder / "model.safetensors", 100)
            torn.append(newest.step)
        return 14 <= step <= 15 and tries == 1

    run, go = poisoned(is_bad, "training.max_skipped=1", "checkpoints.keep_last=9")
    checkpoints.append(run.checkpoints)
    assert go().state == "finished"
    (back,) = rollbacks(run)
    assert 0 < back.rollback_step < 14
    assert back.rollback_step not in torn


def test_best_stands_for_the_best_that_is_left_after_going_back(poisoned, monkeypatch):
    monkeypatch.setattr(divergence, "last_good_step", lambda state, step: 6)

    def best_is(step):
        return linked_step(run.checkpoints, "best") == step

    def is_bad(step, tries):
        if (step, tries) in expected:
            wait_until(lambda: best_is(expected[step, tries]), seconds=30)  # saved beside training
        return 13 <= step <= 14 and tries == 1

    # As if 6 were the last that can be trusted: of what is left, 4 was the best.
    expected = {(14, 1): 12, (7, 2): 4}
    run, go = poisoned(
        is_bad,
        *("training.max_skipped=1", "training.steps=15", "schedule.peak=1e-4"),
        *("evaluation.every_steps=4", "evaluation.best_by=loss", "checkpoints.every_steps=6"),
        "checkpoints.keep_last=9",
    )
    go()
    # To 4, where the save after it was still going on at step 6.
    assert rollbacks(run)[-1].rollback_step in (4, 6)
