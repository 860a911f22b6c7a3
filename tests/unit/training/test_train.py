"""The loop in this process: when it ends, what it keeps, what it tells."""

import json
import math
import shutil
import socket
import threading

import pytest
import torch
from injection import fail_at, memory_for

from dragoman.checkpoints import background
from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import all_checkpoints
from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.errors import OutOfMemoryError, UserError
from dragoman.model.transformer import Transformer
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Evaluated,
    Incident,
    StepDone,
)
from dragoman.telemetry.read.events import read_events
from dragoman.training.checkpointing import Checkpointer, roots_of
from dragoman.training.interruption import Interruption
from dragoman.training.setup import start
from dragoman.training.train import train
from dragoman.training.updater import Updater

ALONE = Group(0, 1, 0, torch.device("cpu"))


@pytest.fixture
def run_with(digits, tmp_path):
    """Train a run in this process with some settings changed."""

    def run(*overrides, name="run", interruption=None):
        config = parse_config(digits.read_text(encoding="utf-8"), "x", overrides)
        prepare(config)
        directory = RunDir(tmp_path / name)
        return train(config, directory, interruption=interruption), directory

    return run


def events(run, kind):
    found = [recorded.stamped.event for recorded in read_events(run)]
    return [event for event in found if isinstance(event, kind)]


def test_steps_end_a_run(run_with):
    ending, run = run_with("training.steps=7")
    assert (ending.state, ending.cause, ending.step) == ("finished", "steps", 7)
    assert events(run, AttemptEnded) == [ending]
    assert read_json(run.status)["state"] == "finished"
    assert [event.step for event in events(run, StepDone)] == list(range(1, 8))


def test_epochs_end_a_run_when_the_data_was_seen_so_often(run_with, digits):
    text = digits.read_text(encoding="utf-8").replace("steps = 20\n", "epochs = 2\n", 1)
    digits.write_text(text, encoding="utf-8")
    ending, run = run_with("training.tokens_per_update=3000", "training.micro_batch_tokens=3000")
    last = events(run, StepDone)[-1]
    assert ending.cause == "epochs"
    assert last.epoch == 2.0
    assert ending.step == last.step


def test_wall_time_ends_a_run_and_counts_earlier_attempts(run_with):
    run_with("training.steps=3")
    ending, run = run_with("training.steps=50", "training.hours=0.000001")
    assert ending.cause == "hours"
    assert ending.step == 3
    assert len(events(run, AttemptStarted)) == 2


def test_patience_ends_a_run_that_gets_no_better(run_with):
    ending, run = run_with(
        *("training.steps=60", "training.patience=2", "evaluation.every_steps=2"),
        "schedule.peak=1e-9",
    )
    assert ending.reason == "no better bleu in 2 evaluations"
    evaluated = events(run, Evaluated)
    assert [event.is_best for event in evaluated] == [True, False, False]
    assert ending.step == evaluated[-1].step == 6


def test_evaluations_come_on_time_and_at_the_end(run_with):
    _, run = run_with("training.steps=13", "evaluation.every_steps=5")
    evaluated = events(run, Evaluated)
    assert [event.step for event in evaluated] == [5, 10, 13]
    assert all(event.train_sample_loss > 0 and event.validation_loss > 0 for event in evaluated)
    assert "tok:13a" in evaluated[0].bleu_signature
    assert set(evaluated[0].samples[0]) == {"source", "translation", "reference"}


def test_evaluations_know_how_sure_their_figures_are(run_with, caplog):
    caplog.set_level("INFO", "dragoman")
    _, run = run_with("training.steps=13", "evaluation.every_steps=5")
    evaluated = events(run, Evaluated)
    assert all(0 < e.validation_loss_error < e.validation_loss for e in evaluated)
    assert all(0 < e.train_sample_loss_error < e.train_sample_loss for e in evaluated)
    assert all(e.bleu_low <= e.bleu_high for e in evaluated)
    last = evaluated[-1]
    interval = f"({last.bleu_low:.1f} to {last.bleu_high:.1f})"
    assert f"BLEU {last.bleu:.1f} {interval}" in caplog.text
    best_before = next(e.step for e in reversed(evaluated[:2]) if e.is_best)
    assert [e.compared_step for e in evaluated] == [None, 5, best_before]
    assert evaluated[0].bleu_gain_p is None
    assert all(0 < e.bleu_gain_p <= 1 for e in evaluated[1:])
    assert sorted(path.name for path in run.references.parent.iterdir()) == [
        "references.txt",
        *(f"step-{step:08d}.txt" for step in (5, 10, 13)),
    ]


class StopAfter(Interruption):
    """An interruption that comes in a step; the loop asks once a step."""

    def __init__(self, steps):
        super().__init__()
        self.steps_left = steps

    @property
    def is_requested(self):
        self.steps_left -= 1
        if self.steps_left == 0:
            self.stop("asked to stop by a test")
        return super().is_requested


@pytest.mark.parametrize("stopped_at", [10, 20], ids=["in between", "in the last step"])
def test_a_run_stopped_when_an_evaluation_is_due_makes_up_for_it(run_with, stopped_at):
    settings = ["training.steps=20", "evaluation.every_steps=5", "evaluation.best_by=loss"]
    ending, run = run_with(*settings, interruption=StopAfter(stopped_at))
    assert ending == AttemptEnded(stopped_at, "preempted", "asked to stop by a test", "signal")
    ending, run = run_with(*settings)
    assert (ending.state, ending.step) == ("finished", 20)
    _, whole = run_with(*settings, name="whole")
    assert [e.step for e in events(run, Evaluated)] == [5, 10, 15, 20]
    assert [(e.bleu, e.validation_loss, e.is_best) for e in events(run, Evaluated)] == [
        (e.bleu, e.validation_loss, e.is_best) for e in events(whole, Evaluated)
    ]
    for link in ("best", "latest"):
        states = [read_json(each.checkpoints / link / "state.json")["run"] for each in (run, whole)]
        assert len({json.dumps(state | {"elapsed_s": 0}) for state in states}) == 1


def test_what_was_made_up_for_is_saved_before_the_next_step(run_with):
    settings = ["training.steps=20", "evaluation.every_steps=5", "evaluation.best_by=loss"]
    for stopped_at in (10, 1):  # the second time right after it has looked
        _, run = run_with(*settings, interruption=StopAfter(stopped_at))
    assert (run.checkpoints / "best").readlink().name == "step-00000010"
    state = read_json(run.checkpoints / "step-00000010" / "state.json")["run"]
    assert (state["evaluated_step"], state["best_step"]) == (10, 10)


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


def test_parts_of_a_step_add_up_to_it(run_with):
    _, run = run_with()
    for event in events(run, StepDone):
        # Each is written to the microsecond.
        assert sum(event.parts_s.values()) == pytest.approx(event.step_s, abs=1e-5)
        assert min(event.parts_s.values()) >= 0


def test_gradients_that_are_not_finite_change_nothing_and_are_told(run_with, monkeypatch):
    forward = Transformer.forward
    poisoned = []

    def sometimes_infinite(self, *inputs):
        hidden = forward(self, *inputs)
        if self.training and poisoned == [] and len(calls) == 5:
            poisoned.append(True)
            return hidden * math.inf
        calls.append(1)
        return hidden

    calls: list[int] = []
    monkeypatch.setattr(Transformer, "forward", sometimes_infinite)
    _, run = run_with("training.steps=6", "evaluation.every_steps=100", "training.seed=5")
    skipped = [event.step for event in events(run, StepDone) if not event.updated]
    assert len(skipped) == 1
    assert [event.step for event in events(run, Incident)] == skipped
    weights = Checkpoint((run.checkpoints / "latest").resolve()).model()
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_a_failure_is_recorded_with_its_step_and_raised(run_with, monkeypatch, tmp_path):
    real = Updater.gradients

    def failing(self, work, pieces):
        if work.step == 4:
            raise RuntimeError("the device is gone")
        return real(self, work, pieces)

    monkeypatch.setattr(Updater, "gradients", failing)
    with pytest.raises(RuntimeError, match="the device is gone"):
        run_with("training.steps=9")
    run = RunDir(tmp_path / "run")
    (end,) = events(run, AttemptEnded)
    assert (end.step, end.state, end.cause) == (3, "failed", "error")
    assert "the device is gone" in end.reason
    assert read_json(run.status)["state"] == "failed"


@pytest.mark.parametrize("phase", ["accumulation", "forward", "backward"])
def test_running_out_of_memory_changes_no_loss_and_is_told(run_with, caplog, phase):
    caplog.set_level("INFO", "dragoman")
    settings = ["training.steps=6", "model.dropout=0.0", "evaluation.every_steps=100"]
    with fail_at(ALONE, rank=0, step=3, phase=phase, times=2):
        _, run = run_with(*settings)
    _, undisturbed = run_with(*settings, name="undisturbed")
    for one, other in zip(events(run, StepDone), events(undisturbed, StepDone), strict=True):
        assert one.loss == pytest.approx(other.loss, abs=5e-6)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-5)
    first, second = [event for event in events(run, Incident) if event.step == 3]
    assert [(e.category, e.ranks, e.pieces) for e in (first, second)] == [
        ("out-of-memory", (0,), 2),
        ("out-of-memory", (0,), 4),
    ]
    assert f"step 3: {first.message}" in caplog.text


def test_dropout_of_pieces_is_drawn_for_each_of_them(run_with):
    settings = ["training.steps=3", "model.dropout=0.3"]
    losses = []
    for name in ("first", "second"):
        with fail_at(ALONE, rank=0, step=2, phase="forward"):
            _, run = run_with(*settings, name=name)
        losses.append([event.loss for event in events(run, StepDone)])
    _, undisturbed = run_with(*settings, name="undisturbed")
    whole = [event.loss for event in events(undisturbed, StepDone)]
    assert losses[0] == losses[1]
    assert losses[0][0] == whole[0]
    assert losses[0][1] != whole[1]


def test_a_model_too_large_for_a_single_pair_stops_the_run_in_one_sentence(run_with, tmp_path):
    with (
        memory_for(ALONE, rank=0, step=2, pairs=0),
        pytest.raises(OutOfMemoryError, match=r"with a single pair at a time; start a new run"),
    ):
        run_with("training.steps=4")
    (end,) = events(RunDir(tmp_path / "run"), AttemptEnded)
    assert (end.state, end.cause, end.culprit_rank) == ("failed", "out-of-memory", 0)
    assert end.culprit_host == socket.gethostname()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_like_full_precision(run_with, precision):
    _, full = run_with("training.steps=15", "model.dropout=0.0", name="full")
    _, half = run_with(
        *("training.steps=15", "model.dropout=0.0", f"training.precision={precision}"), name="half"
    )
    updated = [event for event in events(half, StepDone) if event.updated]
    assert len(updated) >= 12
    if precision == "bf16":
        for one, other in zip(events(full, StepDone), events(half, StepDone), strict=True):
            assert one.loss == pytest.approx(other.loss, rel=0.02)
    assert updated[-1].loss < 0.95 * updated[0].loss
    state = Checkpoint((half.checkpoints / "latest").resolve()).state()["run"]
    assert bool(state["loss_scaling"]) == (precision == "fp16")


def test_the_loss_scale_is_resumed(run_with):
    run_with("training.steps=4", "training.precision=fp16")
    _, run = run_with("training.steps=8", "training.precision=fp16")
    whole_ending, whole = run_with("training.steps=8", "training.precision=fp16", name="whole")
    assert whole_ending.step == 8
    assert {e.step: e.loss for e in events(run, StepDone)} == {
        e.step: e.loss for e in events(whole, StepDone)
    }


def test_a_device_that_is_not_there_is_refused(run_with):
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(UserError, match=r"set training\.device to cpu"):
        run_with("training.device=cuda")


def test_the_first_words_say_what_will_happen(run_with, caplog):
    caplog.set_level("INFO", "dragoman")
    run_with("training.steps=2")
    assert "starting; 1 worker(s) on cpu, 800 pairs" in caplog.text
    run_with("training.steps=4")
    assert "going on after step 2" in caplog.text


def test_checkpoints_of_another_run_are_neither_taken_nor_removed(run_with, tmp_path, caplog):
    """Of the same data, model and batches: only the id tells them apart."""
    _, other = run_with("training.steps=20", name="other")
    _, run = run_with("training.steps=5")
    foreign = run.checkpoints / "step-00000020"
    shutil.copytree(other.checkpoints / foreign.name, foreign)
    ending, _ = run_with("training.steps=8", "checkpoints.keep_last=1")
    assert ending.step == 8
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 6]
    assert foreign.is_dir()
    assert "step-00000020: belongs to another run: its id is" in caplog.text


def test_a_checkpoint_from_before_there_were_ids_is_gone_on_from(run_with):
    _, run = run_with("training.steps=5")
    manifest = run.checkpoints / "step-00000005" / "manifest.json"
    content = read_json(manifest)
    del content["owner"]["id"]
    manifest.write_text(json.dumps(content))
    run.id.unlink()
    run_with("training.steps=8")
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 6]


def test_what_killed_attempts_left_is_removed_at_the_next_start(run_with, digits, tmp_path):
    memory = f"checkpoints.memory_folder={tmp_path}/memory"
    _, run = run_with("training.steps=5", memory)
    config = parse_config(digits.read_text(encoding="utf-8"), "x", [memory])
    roots = roots_of(run, config.checkpoints)
    for root in roots:
        (root / ".unfinished-step-00000009-123").mkdir(parents=True)
        (root / ".removed-step-00000001").mkdir()
        (root / ".latest-123").symlink_to("step-00000005")
    (run.root / f".seen-{16 * 'a'}-3").touch()
    (run.root / ".status.json-0123456789abcdef").touch()
    run.references.parent.mkdir(exist_ok=True)
    (run.references.parent / ".step-00000005.txt-0123456789abcdef").touch()
    with start(config, run, ALONE):
        hidden = [path.name for root in (run.root, *roots) for path in root.rglob(".*")]
        assert hidden == [".lock"]
