"""Which checkpoints a run keeps, and how a slow disk is waited for."""

import shutil
import threading

from recorded import events

from dragoman.checkpoints import background
from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import all_checkpoints
from dragoman.config import parse_config
from dragoman.telemetry.events import (
    CheckpointSaved,
    Evaluated,
    StepDone,
)
from dragoman.training.checkpointing import Checkpointer, lost_steps, owner_of, roots_of


def test_the_newest_and_the_best_checkpoints_are_kept(run_with):
    _, run = run_with(
        *("training.steps=20", "evaluation.every_steps=4", "checkpoints.every_steps=2"),
        *("checkpoints.keep_last=2", "checkpoints.keep_best=2", "evaluation.best_by=loss"),
    )
    by_loss = sorted(events(run, Evaluated), key=lambda event: event.validation_loss)
    best = {event.step for event in by_loss[:2]}
    saved = [event.step for event in events(run, CheckpointSaved)]
    assert {4, 8, 12, 16, 20} <= {*saved}, "after each evaluation, however slow the disk is"
    assert len(saved) == len({*saved}) <= 10
    # The first stays as well: later ones are too young to be trusted if numbers go wrong.
    kept = {c.step for c in all_checkpoints(run.checkpoints)}
    assert kept == {saved[0], *saved[-2:]} | best
    assert Checkpoint((run.checkpoints / "best").resolve()).step == by_loss[0].step
    assert Checkpoint((run.checkpoints / "latest").resolve()).step == 20


def test_a_slow_disk_holds_nobody_up_and_gets_the_next_save_when_it_is_ready(run_with, monkeypatch):
    ready = threading.Event()
    real = background.save_snapshot

    def save_snapshot(root, snapshot):
        assert ready.wait(60)
        return real(root, snapshot)

    monkeypatch.setattr(background, "save_snapshot", save_snapshot)
    record_saves = _at_step(7, ready.set, Checkpointer.record_saves)
    monkeypatch.setattr(Checkpointer, "record_saves", record_saves)
    _, run = run_with(
        *("training.steps=40", "evaluation.every_steps=100", "checkpoints.every_steps=2"),
    )
    saved = [event.step for event in events(run, CheckpointSaved)]
    assert saved[0] == 2, "it was in flight while the steps up to 7 were done"
    assert saved[1] > 7


def test_snapshots_in_memory_leave_time_for_those_on_disk(run_with, monkeypatch, tmp_path):
    """Each is in flight while the next step asks whether to save, and done when that step ends."""
    step_ends = threading.Event()
    real_save, real_record = background.save_snapshot, Checkpointer.record_saves

    def save_snapshot(root, snapshot):
        if root.is_relative_to(tmp_path / "ram"):
            assert step_ends.wait(60)
        return real_save(root, snapshot)

    def record_saves(self, *arguments, **more):
        step_ends.set()
        self.finish()
        step_ends.clear()
        return real_record(self, *arguments, **more)

    monkeypatch.setattr(background, "save_snapshot", save_snapshot)
    monkeypatch.setattr(Checkpointer, "record_saves", record_saves)
    _, run = run_with(
        *("training.steps=12", "evaluation.every_steps=100", "checkpoints.every_steps=3"),
        *("checkpoints.memory_every_steps=1", f"checkpoints.memory_folder={tmp_path / 'ram'}"),
    )
    on_disk = {c.step for c in all_checkpoints(run.checkpoints)}
    assert on_disk == {4, 7, 10, 12}, "one step after those that are multiples of 3"


def test_snapshots_in_memory_of_a_run_that_was_removed_are_not_resumed(run_with, tmp_path):
    memory = ("checkpoints.memory_every_steps=1", f"checkpoints.memory_folder={tmp_path / 'ram'}")
    _, run = run_with("training.steps=3", *memory)
    config = parse_config(run.config.read_text(), "x")
    (root,) = roots_of(run, config.checkpoints)[1:]
    assert not root.exists(), "a finished run needs none"
    shutil.copytree(run.checkpoints / "step-00000003", root / "step-00000003")
    shutil.rmtree(run.root)
    _, run = run_with("training.steps=3", *memory)
    assert [event.step for event in events(run, StepDone)] == [1, 2, 3]


def _at_step(step, action, function):
    """`function`, with `action` before it when so many calls have been made."""
    calls = []

    def called(*arguments, **more):
        calls.append(None)
        if len(calls) == step:
            action()
        return function(*arguments, **more)

    return called


def test_what_is_lost_counts_from_the_newest_whole_checkpoint():
    assert lost_steps(10, 10).startswith("no step is lost")
    assert "6 step(s) are lost" in lost_steps(10, 4)
    assert "10 step(s) are lost" in lost_steps(10, 0)


def test_a_checkpoint_belongs_to_an_id_data_model_and_batches(digits_config):
    class Prepared:
        content_hash = "abc"

    owner = owner_of("id", digits_config, Prepared)
    larger = digits_config.model_copy(
        update={"model": digits_config.model.model_copy(update={"width": 999})}
    )
    longer = digits_config.model_copy(
        update={"training": digits_config.training.model_copy(update={"steps": 999})}
    )
    assert owner_of("other", digits_config, Prepared) != owner
    assert owner_of("id", larger, Prepared) != owner
    assert owner_of("id", longer, Prepared) == owner
