import json
import math

import pytest
from pydantic import ValidationError

from dragoman.training.divergence import DivergenceState
from dragoman.training.state import PendingEvaluation, RunState

SCALER = {
    "scale": 65536.0,
    "growth_factor": 2.0,
    "backoff_factor": 0.5,
    "growth_interval": 2000,
    "_growth_tracker": 3,
}


def test_steps_add_up():
    state = RunState().after_step(100, 0.5).after_step(120, 0.75)
    assert (state.step, state.tokens, state.elapsed_s) == (2, 220, 1.25)


def test_the_best_score_resets_patience_and_a_tie_does_not():
    state = RunState(step=10).after_evaluation(20.0, 1.0, keep_best=1)
    assert (state.best_step, state.best_score, state.evaluations_since_best) == (10, 20.0, 0)
    state = state.after_step(1, 1.0).after_evaluation(20.0, 1.0, keep_best=1)
    assert (state.best_step, state.evaluations_since_best) == (10, 1)
    state = state.after_step(1, 1.0).after_evaluation(21.0, 1.0, keep_best=1)
    assert (state.best_step, state.evaluations_since_best) == (12, 0)


def test_a_score_may_be_of_an_earlier_step():
    state = RunState(step=10).after_losses(1.0)
    assert (state.evaluated_step, state.best_step, state.elapsed_s) == (10, None, 1.0)
    state = state.after_step(1, 1.0).with_score(10, 20.0, keep_best=1)
    assert (state.step, state.best_step, state.scores) == (11, 10, {"10": 20.0})
    state = state.with_score(11, 19.0, keep_best=1)
    assert (state.best_step, state.evaluations_since_best) == (10, 1)


def test_what_is_pending_survives_json():
    pending = PendingEvaluation(3, None, math.inf, 0.5, None, None)
    state = RunState(step=4, pending=pending)
    assert RunState.from_json(state.to_json()) == state
    without = {key: value for key, value in state.to_json().items() if key != "pending"}
    assert RunState.from_json(without).pending is None  # of a version that knew of none


def test_only_the_best_steps_are_remembered_for_keeping():
    state = RunState()
    for score in (5.0, 9.0, 7.0, 8.0):
        state = state.after_step(1, 1.0).after_evaluation(score, 0.0, keep_best=2)
    assert state.scores == {"2": 9.0, "4": 8.0}


def test_the_state_survives_json_and_ignores_what_a_later_version_adds():
    state = RunState(step=3, tokens=7, best_step=2, best_score=1.5, scores={"2": 1.5})
    assert RunState.from_json(state.to_json() | {"future": 1}) == state


def test_the_loss_scale_survives_with_its_integers():
    """torch's scaler refuses an interval of 2000.0."""
    state = RunState.from_json(RunState(loss_scaling=SCALER).to_json())
    assert state.loss_scaling == SCALER
    assert isinstance(state.loss_scaling["growth_interval"], int)


def test_scores_of_losses_that_are_not_finite_are_kept():
    state = RunState(step=1).after_evaluation(-math.inf, 0.0, keep_best=1)
    assert RunState.from_json(state.to_json()) == state


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": None},
        {"step": "3"},
        {"step": 1.5},
        {"step": True},
        {"step": -1},
        {"step": 10**30},
        {"tokens": []},
        {"elapsed_s": math.nan},
        {"elapsed_s": "1"},
        {"best_score": "high"},
        {"scores": {"two": 1.0}},
        {"scores": []},
        {"loss_scaling": {"scale": 1.0}},
        {"loss_scaling": SCALER | {"scale": math.nan}},
        {"optimizer": {"k": math.nan}},
        {"optimizer": {"k": -1}},
        {"optimizer": {"k": "3"}},
        {"optimizer": {"k": 3, "a": 1, "b": 1, "c": 1}},
        {"numbers": []},
        {"numbers": {"recent": [1.0, None]}},
        {"numbers": {"recent": [1.0] * 101}},
        {"numbers": {"level": math.inf}},
        {"numbers": {"rate_factor": 0.0}},
    ],
    ids=str,
)
def test_a_state_of_wrong_values_is_refused(wrong):
    with pytest.raises(ValidationError):
        RunState.from_json(RunState().to_json() | wrong)


def test_counts_of_the_optimizer_survive_to_the_last_bit():
    counts = {"k": 7, "weight_sum": 0.1 + 0.2, "lr_max": 1 / 3}
    written = json.dumps(RunState(optimizer=counts).to_json())
    assert RunState.from_json(json.loads(written)).optimizer == counts


def test_checkpoints_keep_the_key_under_which_earlier_versions_saved_divergence():
    state = RunState(divergence=DivergenceState(skipped=2, recent=(3.0, 2.5), rollbacks=1))
    assert state.to_json()["numbers"]["recent"] == (3.0, 2.5)
    old = {"step": 7, "numbers": {"skipped": 2, "recent": [3.0, 2.5], "rollbacks": 1}}
    assert RunState.from_json(old).divergence == state.divergence
