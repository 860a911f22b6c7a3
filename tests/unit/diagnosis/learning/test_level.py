import math

import numpy as np
import pytest

from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.level import level_of, loss_words


def level(loss, bleu=math.nan, sample=math.nan, vocabulary=32768):
    columns = [np.full(5, value) for value in (loss, sample, bleu, *[math.nan] * 4)]
    return level_of(Evaluations(np.arange(1.0, 6), *columns), vocabulary)


@pytest.mark.parametrize(
    ("loss", "bleu", "is_poor"),
    [
        (1.59, 25.8, False),  # Transformer base on newstest2013
        (1.59, math.nan, False),
        (2.6, 11.0, True),
        (2.6, math.nan, True),
        (2.4, 24.0, False),  # translations say more than a loss
        (2.4, 17.0, True),
        (2.0, 16.0, False),
        (1.5, 4.0, True),
    ],
)
def test_poor_is_far_from_what_translation_models_reach(loss, bleu, is_poor):
    assert level(loss, bleu).is_poor == is_poor


def test_the_vocabulary_is_the_measure():
    assert level(2.0, vocabulary=32768).is_poor is False
    assert level(2.0, vocabulary=2000).is_poor is True


def test_guessing_is_no_learning():
    assert level(9.4).has_learned_nothing
    assert not level(2.6).has_learned_nothing


def test_a_level_is_that_of_the_newest_evaluations_and_of_the_best_bleu():
    losses = np.array([5.0, 3.0, 2.0, 1.9, 7.0])
    nothing = np.full(5, math.nan)
    bleu = np.array([1.0, 9.0, math.nan, 22.0, 20.0])
    columns = Evaluations(np.arange(5.0), losses, losses - 0.5, bleu, *[nothing] * 4)
    found = level_of(columns, 32768)
    assert (found.loss, found.usual_loss, found.bleu) == (7.0, 2.0, 22.0)
    assert found.gap == pytest.approx(0.5)
    assert found.share == pytest.approx(2.0 / math.log(32768))


def test_nats_are_explained():
    assert loss_words(2.6).startswith("2.600 nats (the model's surprise per piece")
