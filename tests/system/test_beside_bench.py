"""`make bench-beside`: events become figures."""

import pytest
from beside import figures_of, table

from dragoman.telemetry.events import Evaluated, Stamped, StepDone


def step(at, number, step_s=1.0):
    return Stamped(at, at, StepDone(number, 0.0, 3.0, 100, 1e-3, 1.0, True, step_s))


def evaluated(at, number, seconds, bleu=20.0, **more):
    event = Evaluated(number, 3.0, None, bleu, bleu, "", "", False, seconds, **more)
    return Stamped(at, at, event)


def test_inline_an_evaluation_takes_all_its_time_from_training():
    found = figures_of(
        [step(11.0, 1), evaluated(15.0, 1, 4.0), step(16.0, 2), evaluated(21.0, 2, 5.0)]
    )
    assert (found.wall_s, found.steps_s, found.evaluations) == (6.0, 2.0, 1)
    assert (found.taken_s, found.stood_still_s) == (4.0, 4.0)
    assert (found.step_beside_s, found.beside_s) == (None, 0.0)
    assert found.bleu == {1: 20.0, 2: 20.0}


def test_beside_it_takes_the_losses_and_what_it_makes_steps_longer():
    late = {"arrived_step": 3, "beside_s": 5.0}
    found = figures_of(
        [
            step(11.0, 1),
            evaluated(11.5, 1, 0.5, bleu=None),
            step(12.5, 2),
            step(16.0, 3, step_s=1.5),
            evaluated(17.0, 1, 0.0, **late),
            step(18.5, 4),
            evaluated(20.0, 4, 1.5),
        ]
    )
    assert (found.evaluations, found.stood_still_s) == (1, 0.5)
    assert found.taken_s == pytest.approx(18.5 - 10.0 - 4.5)
    assert (found.step_alone_s, found.step_beside_s, found.beside_s) == (1.0, 1.5, 5.0)
    assert found.bleu == {1: 20.0, 4: 20.0}
    assert "| last BLEU but one | 20.00" in table({"inline": [found], "beside": [found]})
