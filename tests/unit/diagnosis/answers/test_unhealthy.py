import math

import numpy as np
import pytest
from unit.diagnosis.learning_run import figure, learned, noise

from dragoman.diagnosis.answers.trained import answer
from dragoman.diagnosis.answers.unhealthy import skipped_share

SETTINGS = ["schedule.warmup_steps=2000"]
PLATEAU = np.exp(-np.arange(1, 26) / 2) + noise(25, 0.003, 2)


def at_rest(root, level, bleu=None, gap=0.1, settings=SETTINGS, **more):
    losses = level + PLATEAU
    root.mkdir(exist_ok=True)
    scores = None if bleu is None else bleu - 10 * np.abs(PLATEAU)
    return learned(
        root / "run", losses, losses - gap, bleu=scores, settings=settings, **more
    ).asked(answer)


def commands(found):
    return [advice.command for advice in found.advice]


@pytest.mark.parametrize("bleu", [11.0, None])
def test_rest_at_a_poor_level_is_no_end(tmp_path, bleu):
    found = at_rest(tmp_path, 2.6, bleu)
    assert (found.verdict, found.confidence) == ("not yet", "low")
    assert figure(found, "loss, of that of guessing").value == pytest.approx(0.25, abs=0.01)
    assert all(commands(found))
    assert 1 <= len(found.advice) <= 3


def test_rest_at_a_good_level_is_one(tmp_path):
    found = at_rest(tmp_path, 1.5, 27.0)
    assert found.verdict == "yes"
    assert not found.advice


def test_a_poor_level_with_a_rate_too_high_is_blamed_on_it(tmp_path):
    found = at_rest(tmp_path, 2.6, 11.0, settings=[*SETTINGS, "schedule.scale=20.0"])
    assert "schedule.scale=2.0" in commands(found)[0]


def test_a_poor_level_far_above_the_training_sample_is_blamed_on_little_data(tmp_path):
    found = at_rest(tmp_path, 2.6, 11.0, gap=1.0)
    assert "990 training pairs" in found.sentence
    assert "model.dropout" in commands(found)[0]


def test_a_third_of_all_updates_skipped_is_no_healthy_end(tmp_path):
    found = at_rest(tmp_path, 1.5, 27.0, skipped=lambda number: number % 300 == 0)
    assert (found.verdict, found.confidence) == ("not yet", "low")
    assert figure(found, "skipped updates, of all").value == pytest.approx(1 / 3, abs=0.01)
    assert "schedule.scale" in commands(found)[0]
    few = at_rest(tmp_path / "few", 1.5, 27.0, skipped=lambda number: number == 3000)
    assert few.verdict == "yes"


def test_the_share_of_no_steps_is_none(tmp_path):
    assert skipped_share(learned(tmp_path / "run", [], steps=1).facts) == 0.0


def test_scores_too_good_to_be_true_tell_nothing(tmp_path):
    found = at_rest(tmp_path, 0.15, 97.0, gap=0.0)
    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "training set" in found.sentence


def test_a_diverged_run_goes_back_to_what_is_left(tmp_path):
    losses = [*(1.5 + PLATEAU), math.nan]
    run = learned(tmp_path / "run", losses, checkpoints=[20_000, 26_000], best=20_000)
    found = run.asked(answer)
    assert (found.verdict, found.confidence) == ("not yet", "high")
    new_run, use = commands(found)
    assert "optimizer.clip_norm=1.0" in new_run
    assert use.endswith("--checkpoint best")


def test_a_loss_that_jumps_about_at_a_poor_level_is_not_too_early_to_judge(tmp_path):
    losses = 3.5 + noise(30, 0.15, 3)
    found = learned(tmp_path / "run", losses, losses, settings=SETTINGS).asked(answer)
    assert (found.verdict, found.confidence) == ("not yet", "low")
    assert found.advice
