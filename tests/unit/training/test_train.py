"""The loop in this process: when it ends, what it records."""

import dataclasses
import json
import signal
import threading
from unittest.mock import MagicMock, Mock

import pytest
from recorded import events
from safetensors.numpy import load_file

from dragoman.checkpoints.names import MODEL, OPTIMIZER, STATE
from dragoman.config import SyncSettings
from dragoman.errors import UserError
from dragoman.preparation import prepare
from dragoman.report.write import read_report
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    Evaluated,
    ScheduleExtended,
    StepDone,
)
from dragoman.training import auto_sync
from dragoman.training import train as loop
from dragoman.training.interruption import Interruption
from dragoman.training.observer import RankParts
from dragoman.training.state import RunState
from dragoman.training.train import adopt, first_choice, train
from dragoman.training.updater import Updater


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


def test_wall_time_that_ends_a_window_loses_nothing_of_it(run_with):
    """No step knows that it is the last one, and the first fragment would set out after two."""
    settings = ("sync.mode=local", "training.steps=50", "training.hours=0.000001")
    ending, run = run_with(*settings)
    assert (ending.cause, ending.step) == ("hours", 1)
    common, own = (load_file(run.checkpoints / "latest" / name) for name in (MODEL, OPTIMIZER))
    assert all((own[f"{name}|weight@0"] == weight).all() for name, weight in common.items())
    _, begun = run_with(*settings, "schedule.peak=1e-12", name="untrained")
    initial = load_file(begun.checkpoints / "latest" / MODEL)
    assert any(abs(initial[name] - common[name]).max() > 1e-6 for name in common)


def test_a_run_that_is_ended_where_it_was_stopped_loses_nothing_of_its_window(run_with):
    """Its last step was taken when there were to be more."""
    run_with("sync.mode=local", "training.steps=50", interruption=StopAfter(3))
    ending, run = run_with("sync.mode=local", "training.steps=3")
    assert (ending.cause, ending.step) == ("steps", 3)
    common, own = (load_file(run.checkpoints / "latest" / name) for name in (MODEL, OPTIMIZER))
    assert all((own[f"{name}|weight@0"] == weight).all() for name, weight in common.items())


def test_weights_that_are_common_are_not_moved_again_by_an_evaluation_that_was_due(run_with):
    """Stopped in its last step, after which only the evaluation is left."""
    settings = ("sync.mode=diloco", "training.steps=3")
    run_with(*settings, interruption=StopAfter(3))
    _, run = run_with(*settings)
    _, straight = run_with(*settings, name="straight")
    resumed, whole = (load_file(each.checkpoints / "latest" / MODEL) for each in (run, straight))
    assert all((resumed[name] == weight).all() for name, weight in whole.items())


def test_wall_time_that_is_over_when_a_window_goes_on_loses_nothing_of_it(run_with):
    settings = ("sync.mode=local", "training.steps=50")
    run_with(*settings, interruption=StopAfter(3))
    ending, run = run_with(*settings, "training.hours=0.000001")
    assert (ending.cause, ending.step) == ("hours", 3)
    common, own = (load_file(run.checkpoints / "latest" / name) for name in (MODEL, OPTIMIZER))
    assert all((own[f"{name}|weight@0"] == weight).all() for name, weight in common.items())


def test_patience_ends_a_run_that_gets_no_better(run_with):
    ending, run = run_with(
        *("training.steps=60", "training.patience=2", "evaluation.every_steps=2"),
        "schedule.peak=1e-9",
    )
    assert ending.cause == "patience"
    evaluated = events(run, Evaluated)
    assert [event.is_best for event in evaluated] == [True, False, False]
    assert ending.step == evaluated[-1].step == 6


def test_a_finished_run_of_a_linear_schedule_goes_on_with_a_tail(run_with):
    linear = ["schedule.kind=linear", "schedule.warmup_steps=2", "schedule.peak=0.002"]
    run_with(*linear, "training.steps=8")
    with pytest.raises(UserError, match=r"schedule\.tails"):
        run_with(*linear, "training.steps=12")
    more = [*linear, "training.steps=12", "schedule.tails=[[8, 0.001]]"]
    ending, run = run_with(*more)
    assert (ending.state, ending.step) == ("finished", 12)
    rates = {event.step: event.learning_rate for event in events(run, StepDone)}
    assert [rates[step] for step in range(8, 13)] == pytest.approx([0, 75e-5, 50e-5, 25e-5, 0])
    assert events(run, ScheduleExtended) == [ScheduleExtended(8, 12, 0.001, 0.0)]
    # The same as if it had been planned so.
    _, planned = run_with(*more, name="planned")
    assert [(e.step, e.loss) for e in events(run, StepDone)] == [
        (e.step, e.loss) for e in events(planned, StepDone)
    ]
    words = read_report(run)
    (answer,) = [each for each in words.answers if each.key == "learning-rate"]
    assert answer.verdict == "as set"
    assert "schedule.tails" in answer.sentence


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


def test_the_first_words_say_what_will_happen(run_with, caplog):
    caplog.set_level("INFO", "dragoman")
    whole = "training.micro_batch_tokens=2000"
    run_with("training.steps=2", whole)
    assert "starting; 1 worker(s) on cpu, 800 pairs" in caplog.text
    assert "1 micro-batch a step" in caplog.text
    run_with("training.steps=4", whole)
    assert "going on after step 2" in caplog.text


def test_a_run_can_be_trained_and_stopped_off_the_main_thread(run_with):
    """As in a notebook: no signal handler is touched, and another thread asks it to stop."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interruption, endings = StopAfter(3), []
    thread = threading.Thread(
        target=lambda: endings.append(run_with("training.steps=50", interruption=interruption)[0])
    )
    thread.start()
    thread.join(timeout=100)
    (ending,) = endings
    assert (ending.state, ending.cause, ending.step) == ("preempted", "signal", 3)
    assert {number: signal.getsignal(number) for number in before} == before


def test_the_observer_gets_each_step_with_its_own_parts(digits_config, tmp_path):
    seen = []

    class Observer:
        def after_step(self, done, parts_by_rank):
            seen.append((done, parts_by_rank))

        def after_evaluation(self, evaluated):
            pass

    prepare(digits_config)
    run = RunDir(tmp_path / "run")
    train(digits_config, run, lambda *_: Observer())
    assert [done.step for done, _ in seen] == list(range(1, 20))
    assert all(parts == [RankParts.of(done)] for done, parts in seen)


def test_a_worker_that_is_left_alone_synchronizes_with_nobody(run_with, monkeypatch):
    """Of a run of auto whose workers took steps of their own; nor does it measure a network."""

    def choose_local(trainer, state, _):
        settings = SyncSettings(mode="local", local_steps=4)
        trainer.updater.adopt(settings, state.step)
        return dataclasses.replace(state, sync=settings.model_dump(mode="json"))

    with monkeypatch.context() as patched:
        patched.setattr(loop, "first_choice", choose_local)
        run_with("sync.mode=auto", "training.steps=7")
    monkeypatch.setattr(auto_sync, "WATCHED_STEPS", 2)
    monkeypatch.setattr(auto_sync, "LOOK_AGAIN_S", 0.0)
    ending, run = run_with("sync.mode=auto", "training.steps=12")
    assert (ending.state, ending.step) == ("finished", 12)
    assert read_json(run.checkpoints / "latest" / STATE)["run"]["sync"]["mode"] == "fp32"


@pytest.mark.parametrize(
    ("chosen", "looks"),
    [({}, True), (SyncSettings(), True), (SyncSettings(bucket_mb=7.5), False)],
    ids=["nothing", "by one worker alone", "by several"],
)
def test_auto_chooses_where_nothing_was_measured_before(chosen, looks, monkeypatch):
    look = Mock(**{"return_value.chosen.settings": SyncSettings(mode="bf16")})
    monkeypatch.setattr(loop, "look", look)
    monkeypatch.setattr(loop, "rehearse", Mock())
    trainer = Mock(**{"config.sync.mode": "auto", "group.ranks": 2, "data.loader": MagicMock()})
    before = RunState(step=3, sync=chosen and chosen.model_dump(mode="json"))
    state = first_choice(trainer, before, Mock())
    assert look.called == looks
    assert (state.sync["mode"] == "bf16") == looks


def test_another_mode_waits_until_weights_and_moments_are_copied():
    trainer = Mock()
    adopt(trainer, RunState(step=3), Mock(**{"chosen.settings": SyncSettings()}))
    first, second = [call[0] for call in trainer.mock_calls][:2]
    assert (first, second) == ("checkpointer.wait_until_copied", "updater.adopt")
