import math

import pytest
from digits_language import RECIPE

from dragoman.config import parse_config
from dragoman.diagnosis.watch import watch
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.training.observer import RankParts


@pytest.fixture
def config(tmp_path):
    return parse_config(RECIPE.format(folder=tmp_path), "x")


def evaluation(step, validation, train_sample, bleu=20.0):
    return Evaluated(step, validation, train_sample, bleu, 40.0, "", "", False, 1.0)


def lines(observer, losses):
    """Step -> what is told; `losses` of validation and sample, and BLEU where it counts."""
    told = {}
    for number, scores in enumerate(losses, 1):
        line = observer.after_evaluation(evaluation(1000 * number, *scores))
        if line:
            told[1000 * number] = line
    return told


FALLING = [1.5 + 40 * (1000 * n) ** -0.5 for n in range(1, 13)]


def test_overfitting_is_told_once_when_it_has_begun(config):
    turning = [(loss, loss - 0.1) for loss in FALLING]
    turning += [(FALLING[-1] + 0.03 * n, FALLING[-1] - 0.1 - 0.02 * n) for n in range(1, 9)]
    told = lines(watch(config, ["a"], 0, []), turning)
    assert len(told) == 1
    ((step, line),) = told.items()
    assert line.startswith("overfitting since step 12,000: the validation loss is up by 0.")
    assert 14_000 <= step <= 18_000
    assert line.endswith("more steps make it worse")
    told = lines(watch(config, ["a"], 0, []), [(*each, 20.0 + n) for n, each in enumerate(turning)])
    assert [line.rsplit("; ")[-1] for line in told.values()] == ["BLEU rises all the same"]


def test_a_run_that_learns_is_left_in_peace(config):
    assert lines(watch(config, ["a"], 0, []), [(loss, loss - 0.1) for loss in FALLING]) == {}


def test_a_run_that_learns_no_more_is_told_of(config):
    flat = [(1.8 + 3 * math.exp(-n / 2), 1.7 + 3 * math.exp(-n / 2)) for n in range(40)]
    told = lines(watch(config, ["a"], 0, []), flat)
    assert [line[:13] for line in told.values()] == ["fully trained"]


def test_what_was_told_before_a_resume_is_not_told_again(config):
    flat = [evaluation(1000 * n, 1.8 + 3 * math.exp(-n / 2), 1.7) for n in range(1, 40)]
    observer = watch(config, ["a"], 0, flat)
    assert observer.after_evaluation(evaluation(40_000, 1.8, 1.7)) is None


def test_a_slow_network_is_told_of_with_what_would_help(config):
    observer = watch(config, ["a", "b"], 8_000_000, [])
    parts = {"data": 0.0, "forward": 0.3, "backward": 0.3, "communication": 1.4, "rest": 0.0}
    said = [
        observer.after_step(
            StepDone(n, 0.1, 3.0, 1000, 1e-3, 1.0, True, 2.0, parts, {"sent": 8e6}),
            [RankParts.of(parts)] * 2,
        )
        for n in range(1, 60)
    ]
    (line,) = filter(None, said)
    assert line.startswith("network-bound since step 2: 70 % of the step; bf16 on the wire")
