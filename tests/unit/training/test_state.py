from dragoman.training.state import RunState


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


def test_only_the_best_steps_are_remembered_for_keeping():
    state = RunState()
    for score in (5.0, 9.0, 7.0, 8.0):
        state = state.after_step(1, 1.0).after_evaluation(score, 0.0, keep_best=2)
    assert state.scores == {"2": 9.0, "4": 8.0}


def test_the_state_survives_json_and_ignores_what_a_later_version_adds():
    state = RunState(step=3, tokens=7, best_step=2, best_score=1.5, scores={"2": 1.5})
    assert RunState.from_json(state.to_json() | {"future": 1}) == state
