import math

import numpy as np
import pytest
from unit.diagnosis.learning_run import figure, learned, noise

from dragoman.diagnosis.answers.overfitting import answer


def validation_and_sample(turn=10, points=25):
    steps = np.arange(1, points + 1)
    validation = 2.0 + 0.02 * np.abs(steps - turn) + noise(points, 0.002, 1)
    return validation, 2.0 - 0.03 * steps + noise(points, 0.002, 2)


def test_overfitting_names_the_step_after_which_it_began_and_what_to_do(tmp_path):
    validation, sample = validation_and_sample()
    bleu = 25 - 10 * (validation - 2.0) + noise(25, 0.05, 3)
    run = learned(
        tmp_path / "run", validation, sample, bleu, checkpoints=[10_000, 25_000], best=10_000
    )
    found = run.asked(answer)
    assert (found.verdict, found.confidence) == ("yes", "high")
    assert figure(found, "began after step").value == pytest.approx(10_000, abs=1000)
    assert figure(found, "change of BLEU since then").value < -1
    use, again = (advice.command for advice in found.advice)
    assert use == f"dragoman translate {tmp_path / 'run'} --checkpoint best"
    assert "model.dropout=0.3" in again
    assert f"--run {tmp_path / 'run'}-2" in again


def test_a_checkpoint_that_is_gone_is_not_advised(tmp_path):
    validation, sample = validation_and_sample()
    pruned = learned(tmp_path / "run", validation, sample, checkpoints=[24_000, 25_000])
    found = pruned.asked(answer)
    assert found.verdict == "yes"
    assert not any("10,000" in advice.text for advice in found.advice)
    assert "--checkpoint 24000" in found.advice[0].command  # the better of those that are left
    none = learned(tmp_path / "none", validation, sample).asked(answer)
    assert not any("--checkpoint" in advice.command for advice in none.advice)


def test_held_out_pairs_that_were_learned_tell_nothing_about_overfitting(tmp_path):
    losses = 0.2 + np.arange(1, 26) ** -1.0
    found = learned(tmp_path / "run", losses, losses, bleu=np.full(25, 97.0)).asked(answer)
    assert (found.verdict, found.confidence) == ("not known", "none")
    assert found.plain


def test_bleu_that_has_not_fallen_is_told(tmp_path):
    validation, sample = validation_and_sample()
    bleu = 25 + noise(25, 0.1, 5)
    found = learned(tmp_path / "run", validation, sample, bleu).asked(answer)
    assert (found.verdict, found.confidence) == ("yes", "medium")
    assert figure(found, "change of BLEU since then").value == pytest.approx(0.0, abs=0.3)


def test_bleu_that_still_rises_is_what_the_advice_goes_by(tmp_path):
    validation, sample = validation_and_sample()
    bleu = np.linspace(20, 25, 25)
    found = learned(tmp_path / "run", validation, sample, bleu).asked(answer)
    assert (found.verdict, found.confidence) == ("yes", "medium")
    assert figure(found, "change of BLEU since then").value > 2
    assert "still get better" in found.plain


def test_a_gap_alone_is_none(tmp_path):
    losses = 2.0 + np.arange(1, 11) ** -0.5
    found = learned(tmp_path / "run", losses, losses - 0.8).asked(answer)
    assert (found.verdict, found.confidence) == ("no", "high")
    assert figure(found, "gap between them").value == pytest.approx(0.8)


def test_the_running_training_loss_plays_no_part(tmp_path):
    losses = 2.0 + np.arange(1, 11) ** -0.5
    runs = [
        learned(tmp_path / name, losses, losses - 0.1, losses=loss).asked(answer)
        for name, loss in (("a", lambda _: 9.0), ("b", lambda number: 1 / number))
    ]
    assert runs[0] == runs[1]


def test_one_rise_is_too_early_and_says_how_many_more(tmp_path):
    validation = np.array([3.0, 2.5, 2.2, 2.0, 1.9, 1.85, 1.82, 1.8, 1.8, 2.2])
    sample = np.linspace(3.0, 1.0, 10)
    found = learned(tmp_path / "run", validation, sample).asked(answer)
    assert found.verdict == "too early to say"
    assert "more evaluation" in found.sentence


@pytest.mark.parametrize("count", [1, 2])
def test_few_evaluations_are_too_early(tmp_path, count):
    found = learned(tmp_path / "run", [2.0] * count, [2.0] * count).asked(answer)
    assert (found.verdict, found.confidence) == ("too early to say", "none")
    assert f"After {3 - count} more evaluation" in found.sentence


def test_without_a_training_sample_a_rise_cannot_be_explained(tmp_path):
    validation, _ = validation_and_sample()
    settings = ["evaluation.train_sample_pairs=0"]
    found = learned(tmp_path / "run", validation, settings=settings).asked(answer)
    assert found.verdict == "not known"
    assert [advice.command for advice in found.advice] == ["evaluation.train_sample_pairs = 1000"]
    fallen = learned(tmp_path / "fallen", 2.0 + np.arange(1, 11) ** -0.5).asked(answer)
    assert fallen.verdict == "no"


@pytest.mark.parametrize("validation", [[], [2.0, 1.9, 1.8, math.nan]])
def test_without_numbers_nothing_is_known(tmp_path, validation):
    found = learned(tmp_path / "run", validation, validation, steps=4000).asked(answer)
    assert found.verdict == "not known"


def test_ten_rises_in_a_row_are_overfitting_whatever_came_before(tmp_path):
    fall = 0.65 + 39 * np.arange(1.0, 25) ** -1.09
    rises = [0.012, 0.026, 0.036, 0.052, 0.064, 0.078, 0.088, 0.101, 0.114, 0.131]
    validation = np.concatenate([fall, fall[-1] + rises])
    sample = 0.5 + 39 * np.arange(1.0, 35) ** -1.09
    found = learned(tmp_path / "run", validation, sample).asked(answer)
    assert found.verdict == "yes"
    assert figure(found, "began after step").value == pytest.approx(24_000, abs=1000)
    fallen = figure(found, "change of the train-sample loss since then").value
    assert fallen == pytest.approx(sample[-3:].mean() - sample[23], abs=0.1)


def test_a_rise_that_may_be_one_is_not_denied(tmp_path):
    """Its own interval leaves zero out, and two evaluations since do not settle it."""
    validation = [4.108, 2.715, 2.106, 1.810, 1.641, 1.513, 1.430, 1.406]
    validation += [1.416, 1.439, 1.517, 1.514]
    sample = [4.0, 2.6, 2.0, 1.7, 1.5, 1.3, 1.222, 1.186, 1.109, 1.038, 1.014, 0.971]
    found = learned(tmp_path / "run", validation, sample).asked(answer)
    assert found.verdict == "too early to say"
    assert "After 1 more evaluation" in found.sentence


def test_a_run_that_falls_apart_does_so_after_its_last_good_evaluation(tmp_path):
    losses = np.array([3.0, 2.5, 2.2, 2.0, 1.9, 1.85, 1.82, 1.8, 7.5, 7.5, 7.5])
    found = learned(tmp_path / "run", losses, losses - 0.05).asked(answer)
    assert found.verdict == "no"
    assert figure(found, "validation lowest after step").value == 8000
    assert found.advice_text


def test_a_rise_in_doubt_is_not_called_wavering(tmp_path):
    """Beside a figure that shows a rise, a sentence that denies it would be false."""
    steps = np.arange(1, 41)
    validation = 2.0 + 0.0010 * np.maximum(0, steps - 15) + noise(40, 0.006, 1)
    found = learned(tmp_path / "run", validation, 2.0 - 0.5 * steps / 40).asked(answer)
    assert (found.verdict, found.confidence) == ("no", "low")
    rise = figure(found, "rise of the validation loss since then")
    assert rise.value == pytest.approx(0.024, abs=0.0005)
    assert rise.low > 0
    assert "has not risen" not in found.sentence
