"""Evaluations of real runs in this process, inline and beside.

Beside, a stand-in for the process computes the same in this one, after as many polls as a test
wants; tests/faults/test_evaluation_beside.py has real ones.
"""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import pytest
from recorded import events
from safetensors.numpy import load_file

from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.names import MODEL, STATE, linked_step
from dragoman.errors import RunError
from dragoman.evaluation.checkpoint_scorer import open_ctranslate2, score_checkpoint
from dragoman.rundir import read_json
from dragoman.telemetry.events import AttemptEnded, Evaluated, Incident, StepDone
from dragoman.training import beside, divergence, evaluate
from dragoman.training.checkpointing import Checkpointer
from dragoman.training.interruption import Interruption
from dragoman.training.updater import Updater

BESIDE = "evaluation.beside=true"
UNLEARNED = "schedule.peak=1e-9"
"""No evaluation is better than the first."""


class InThisProcess:
    """Has computed its answer at the start, and has it ready at the poll of this number."""

    polls = 3
    started: list[int]

    def __init__(self, request, threads):
        self.started.append(request.step)
        self._answer = score_checkpoint(request, open_ctranslate2)
        self._left = self.polls

    @property
    def has_ended(self):
        self._left -= 1
        return self._left <= 0

    def wait(self, timeout_s):
        self._left = 0
        return True

    def answer(self):
        return self._answer

    def close(self):
        pass


@pytest.fixture
def side(monkeypatch):
    """Saves are waited for, so that the step at which a score arrives follows from the polls."""
    real = Checkpointer.save

    def save(self, *arguments, **named):
        real(self, *arguments, **named)
        self.finish()

    monkeypatch.setattr(Checkpointer, "save", save)
    monkeypatch.setattr(InThisProcess, "started", [], raising=False)
    monkeypatch.setattr(beside, "SideProcess", InThisProcess)
    return InThisProcess


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


def facts(evaluated):
    """What an evaluation has found, whenever and however."""
    kept = dataclasses.asdict(evaluated)
    for name in ("seconds", "arrived_step", "beside_s"):
        del kept[name]
    return kept


def losses(evaluated):
    return {name: value for name, value in facts(evaluated).items() if "loss" in name}


def complete(run):
    """Step -> its last evaluation."""
    return {event.step: event for event in events(run, Evaluated)}


def state_of(run, link="latest"):
    return read_json(run.checkpoints / link / STATE)["run"]


def scored(run):
    """What all evaluations together have decided."""
    state = state_of(run)
    names = ("best_step", "best_score", "evaluations_since_best", "evaluated_step", "scores")
    return {name: state[name] for name in names} | {"link": linked_step(run.checkpoints, "best")}


def test_evaluations_come_on_time_and_at_the_end(run_with):
    _, run = run_with("training.steps=13", "evaluation.every_steps=5")
    evaluated = events(run, Evaluated)
    assert [event.step for event in evaluated] == [5, 10, 13]
    assert all(event.train_sample_loss > 0 and event.validation_loss > 0 for event in evaluated)
    assert "tok:13a" in evaluated[0].bleu_signature
    assert set(evaluated[0].samples[0]) == {"source", "translation", "reference"}
    assert all(event.arrived_step is event.beside_s is None for event in evaluated)


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


@pytest.mark.parametrize("best_by", ["bleu", "loss"])
def test_beside_training_the_same_is_found_and_decided(run_with, side, best_by):
    settings = ("training.steps=43", "evaluation.every_steps=10", f"evaluation.best_by={best_by}")
    _, inline = run_with(*settings, name="inline")
    _, run = run_with(*settings, BESIDE)
    assert side.started == [10, 20, 30, 40]
    assert {step: facts(e) for step, e in complete(run).items()} == {
        step: facts(e) for step, e in complete(inline).items()
    }
    assert max(event.bleu for event in events(run, Evaluated) if event.bleu) > 0
    assert scored(run) == scored(inline)
    weights = [load_file(each.checkpoints / "latest" / MODEL) for each in (inline, run)]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    texts = [
        [path.read_text(encoding="utf-8") for path in sorted(each.references.parent.iterdir())]
        for each in (inline, run)
    ]
    assert texts[0] == texts[1]


def test_losses_are_recorded_at_once_and_scores_when_they_are_there(run_with, side, caplog):
    caplog.set_level("INFO", "dragoman")
    _, run = run_with("training.steps=23", "evaluation.every_steps=10", BESIDE)
    at_10, later_10, at_20, later_20, at_23 = events(run, Evaluated)
    for first, later in ((at_10, later_10), (at_20, later_20)):
        assert (first.bleu, first.chrf, first.is_best, first.arrived_step) == (None,) * 2 + (
            False,
            None,
        )
        assert first.seconds > 0
        assert losses(first) == losses(later)
        assert later.beside_s > 0
        assert later.samples
    # The process starts after step 11, when the save is known to have ended.
    assert (later_10.arrived_step, later_10.seconds) == (14, 0.0)
    assert later_20.arrived_step == 23
    assert later_20.seconds > 0  # it had to be waited for
    assert (at_23.arrived_step, at_23.beside_s) == (None, None)
    assert at_23.bleu is not None
    assert "scores follow" in caplog.text
    assert "beside steps" in caplog.text


@pytest.mark.parametrize("polls", [1, 4, 1000], ids=["at once", "later", "not before it must"])
def test_patience_ends_a_run_one_evaluation_later_however_fast_scores_are(
    run_with, side, monkeypatch, polls
):
    monkeypatch.setattr(side, "polls", polls)
    settings = ("training.steps=90", "training.patience=2", "evaluation.every_steps=6", UNLEARNED)
    ending, run = run_with(*settings, BESIDE)
    assert (ending.cause, ending.step) == ("patience", 24)
    assert [(e.step, e.is_best) for e in complete(run).values()] == [
        *((6, True), (12, False), (18, False), (24, False))
    ]
    again, _ = run_with(*settings, BESIDE)
    assert (again.cause, again.step) == ("patience", 24)
    assert [e.step for e in events(run, StepDone)] == list(range(1, 25))


def test_patience_by_loss_ends_a_run_where_it_would_end_inline(run_with, side):
    settings = ("training.steps=90", "training.patience=2", "evaluation.every_steps=6", UNLEARNED)
    settings += ("evaluation.best_by=loss",)
    inline, _ = run_with(*settings, name="inline")
    ending, run = run_with(*settings, BESIDE)
    assert (ending.cause, ending.step) == (inline.cause, inline.step)
    assert inline.cause == "patience"
    assert all(event.bleu is not None for event in complete(run).values())


def test_a_better_score_of_the_last_step_lets_the_run_go_on(run_with, side, monkeypatch):
    """What an attempt that begins anew would decide, too."""
    bleu = {6: 5.0, 12: 4.0, 18: 3.0, 24: 9.0}
    real, real_inline = side.answer, evaluate.score

    def answer(self):
        found = real(self)
        step = self.started[-1]
        return found.model_copy(update={"scores": found.scores._replace(bleu=bleu.get(step, 1.0))})

    inline = []

    def score(*texts):
        inline.append(24 if not inline else 99)
        return real_inline(*texts)._replace(bleu=bleu.get(inline[-1], 1.0))

    monkeypatch.setattr(side, "answer", answer)
    monkeypatch.setattr(evaluate, "score", score)
    settings = ("training.steps=90", "training.patience=2", "evaluation.every_steps=6")
    ending, run = run_with(*settings, BESIDE)
    assert (ending.cause, ending.step) == ("patience", 42)
    assert side.started == [6, 12, 18, 30, 36]
    assert [e.step for e in complete(run).values() if e.is_best] == [6, 24]
    assert scored(run)["best_step"] == 24


def test_the_checkpoint_whose_score_is_not_known_yet_stays(run_with, side, monkeypatch):
    """The first is the best; newer ones come before anybody knows."""
    monkeypatch.setattr(side, "polls", 1000)
    settings = ("training.steps=30", "evaluation.every_steps=10", "checkpoints.every_steps=2")
    _, run = run_with(*settings, "checkpoints.keep_last=1", UNLEARNED, BESIDE)
    assert linked_step(run.checkpoints, "best") == 10
    kept = {checkpoint.step for checkpoint in all_checkpoints(run.checkpoints)}
    assert {10, 30} <= kept
    assert 20 not in kept  # which was scored, and is not the best
    assert state_of(run)["pending"] is None


@pytest.mark.parametrize("stopped_at", [17, 20, 30], ids=["in between", "when due", "at the end"])
@pytest.mark.parametrize("goes_on", [BESIDE, "evaluation.beside=false"], ids=["beside", "inline"])
def test_a_stopped_run_finishes_what_was_pending(run_with, side, monkeypatch, stopped_at, goes_on):
    monkeypatch.setattr(side, "polls", 1000)
    settings = ("training.steps=30", "evaluation.every_steps=10", "checkpoints.keep_last=1")
    ending, run = run_with(*settings, BESIDE, interruption=StopAfter(stopped_at))
    assert (ending.state, ending.step) == ("preempted", stopped_at)
    pending = (stopped_at - 1) // 10 * 10
    assert state_of(run)["pending"]["step"] == pending
    assert max(complete(run)) == pending
    ending, run = run_with(*settings, goes_on)
    assert (ending.state, ending.step) == ("finished", 30)
    _, whole = run_with(*settings, name="whole")
    assert {step: facts(e) for step, e in complete(run).items()} == {
        step: facts(e) for step, e in complete(whole).items()
    }
    states = [state_of(each) | {"elapsed_s": 0} for each in (run, whole)]
    assert json.dumps(states[0]) == json.dumps(states[1])
    assert linked_step(run.checkpoints, "best") == linked_step(whole.checkpoints, "best")


@pytest.mark.parametrize("last", [20, 30], ids=["at the end", "in between"])
def test_a_run_that_is_stopped_while_it_waits_makes_up_for_the_evaluation(
    run_with, side, monkeypatch, last
):
    interruption = Interruption()

    def wait_in_vain(process, timeout_s):
        interruption.stop("asked to stop by a test")
        return False

    settings = (f"training.steps={last}", "evaluation.every_steps=10", BESIDE)
    monkeypatch.setattr(side, "polls", 1000)
    with monkeypatch.context() as patch:
        patch.setattr(side, "wait", wait_in_vain)
        ending, run = run_with(*settings, interruption=interruption)
    assert (ending.state, ending.step) == ("preempted", 20)
    assert state_of(run)["pending"]["step"] == state_of(run)["evaluated_step"] == 10
    ending, run = run_with(*settings)
    assert (ending.state, ending.step) == ("finished", last)
    _, whole = run_with(*settings, name="whole")
    assert {step: facts(e) for step, e in complete(run).items()} == {
        step: facts(e) for step, e in complete(whole).items()
    }
    assert scored(run) == scored(whole)


def test_a_run_whose_end_comes_before_its_scores_waits_for_them(run_with, side, monkeypatch):
    """Also where the last attempt was stopped after its last step, and this one takes none."""
    monkeypatch.setattr(side, "polls", 1000)
    settings = ("evaluation.every_steps=10", BESIDE)
    run_with("training.steps=30", *settings, interruption=StopAfter(14))
    ending, run = run_with("training.steps=14", *settings)
    assert (ending.state, ending.step) == ("finished", 14)
    assert all(complete(run)[step].bleu is not None for step in (10, 14))
    assert state_of(run)["pending"] is None


def test_a_run_that_its_hours_end_has_nothing_pending(run_with, side):
    """Right when an evaluation is due, whose losses take the last of its time."""
    ending, run = run_with(
        *("training.steps=50", "evaluation.every_steps=1", "training.hours=0.000001"), BESIDE
    )
    assert (ending.cause, ending.step) == ("hours", 1)
    assert complete(run)[1].bleu is not None
    assert side.started == []
    assert state_of(run)["pending"] is None


def test_where_the_process_fails_torch_scores_and_later_evaluations_are_inline(
    run_with, side, monkeypatch
):
    def answer(self):
        raise RunError("it was ended by SIGKILL")

    monkeypatch.setattr(side, "answer", answer)
    settings = ("training.steps=30", "evaluation.every_steps=10")
    ending, run = run_with(*settings, BESIDE)
    assert ending.state == "finished"
    _, whole = run_with(*settings, name="whole")
    assert side.started == [10]
    assert {step: facts(e) for step, e in complete(run).items()} == {
        step: facts(e) for step, e in complete(whole).items()
    }
    assert [e.arrived_step for e in events(run, Evaluated)] == [None, 20, None, None]
    (incident,) = events(run, Incident)
    assert (incident.step, incident.category, incident.ranks) == (20, "evaluation", (0,))
    assert "SIGKILL" in incident.message
    assert scored(run) == scored(whole)
    weights = [load_file(each.checkpoints / "latest" / MODEL) for each in (run, whole)]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_a_checkpoint_that_is_gone_costs_its_scores_and_nothing_more(run_with, side, monkeypatch):
    monkeypatch.setattr(side, "polls", 1000)
    real = beside.Scorer.wait

    def wait(self, is_stopping):
        shutil.rmtree(Path(self._request.run) / "checkpoints" / "step-00000010")
        self._process = None
        return real(self, is_stopping)

    monkeypatch.setattr(beside.Scorer, "wait", wait)
    monkeypatch.setattr(side, "__init__", lambda self, request, threads: no_process())
    ending, run = run_with("training.steps=20", "evaluation.every_steps=10", BESIDE)
    assert (ending.state, ending.step) == ("finished", 20)
    found = complete(run)
    assert (found[10].bleu, found[10].is_best) == (None, False)
    assert math.isfinite(found[10].validation_loss)
    assert (found[20].bleu is not None, found[20].is_best) == (True, True)
    (incident,) = events(run, Incident)
    assert "left without scores" in incident.message


def no_process():
    raise OSError("there is no process")


def test_without_ctranslate2_all_is_inline_and_the_run_says_so(run_with, side, monkeypatch):
    monkeypatch.setattr(beside.importlib.util, "find_spec", lambda name: None)
    ending, run = run_with("training.steps=20", "evaluation.every_steps=10", BESIDE)
    assert ending.state == "finished"
    assert [e.arrived_step for e in events(run, Evaluated)] == [None, None]
    assert side.started == []
    (incident,) = events(run, Incident)
    assert "CTranslate2" in incident.message


def test_a_rollback_takes_back_what_was_computed_beside(run_with, side, monkeypatch):
    """From before the evaluation: that of the new line counts, with its own weights."""
    real, bad = Updater.gradients, {12: 1, 13: 1}

    def gradients(self, work, pieces=1):
        found = real(self, work, pieces)
        if bad.pop(work.step, 0):
            for parameter in self.objective.parameters():
                parameter.grad.fill_(math.nan)
            found = dataclasses.replace(found, norm=math.nan)
        return found

    monkeypatch.setattr(Updater, "gradients", gradients)
    monkeypatch.setattr(divergence, "last_good_step", lambda state, step: 6)
    monkeypatch.setattr(side, "polls", 1000)
    ending, run = run_with(
        *("training.steps=20", "evaluation.every_steps=10", "training.max_skipped=1", BESIDE),
        *("checkpoints.keep_last=9",),
    )
    assert ending.state == "finished"
    back = next(e.rollback_step for e in events(run, Incident) if e.category == "rollback")
    assert back < 10
    assert side.started == [10, 10]
    first, again = [e for e in events(run, Evaluated) if e.step == 10 and e.bleu is None]
    assert first.validation_loss != again.validation_loss
    assert complete(run)[10].validation_loss == again.validation_loss
    assert events(run, AttemptEnded) == [ending]
