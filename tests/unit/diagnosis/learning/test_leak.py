import math

import numpy as np
import pytest
from unit.report.fake_run import CONFIG

from dragoman.config import parse_config
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.leak import leak_of

TEXT = parse_config(CONFIG, "x")
PHRASEBOOK = parse_config(CONFIG, "x", {"data.validation": [{"kind": "phrasebook", "pairs": 300}]})


def evaluations(loss, sample, bleu):
    columns = [np.full(4, value) for value in (loss, sample, bleu, *[math.nan] * 4)]
    return Evaluations(np.arange(1.0, 5), *columns)


@pytest.mark.parametrize(
    ("loss", "sample", "bleu", "is_one"),
    [
        (0.15, 0.15, 97.0, True),
        (0.50, 0.49, 75.0, True),
        (0.50, 0.20, 75.0, False),  # learned by heart, and held out ones are not
        (0.30, 0.10, 93.0, True),
        (0.30, math.nan, 75.0, False),
        (0.30, math.nan, 95.0, True),
        (1.59, 1.55, 26.0, False),
        (1.10, 1.00, 55.0, False),
    ],
)
def test_scores_that_no_system_reaches_are_signs_of_a_leak(loss, sample, bleu, is_one):
    assert (leak_of(TEXT, evaluations(loss, sample, bleu), []) is not None) == is_one


def test_the_score_of_the_test_set_counts():
    leak = leak_of(TEXT, evaluations(1.0, 1.0, 30.0), [96.0])
    assert leak is not None
    assert (leak.bleu, leak.gap) == (96.0, 0.0)


def test_sentences_of_a_small_grammar_may_be_translated_to_the_letter():
    assert leak_of(PHRASEBOOK, evaluations(0.15, 0.15, 97.0), []) is None


def test_without_evaluations_there_is_no_sign():
    assert leak_of(TEXT, Evaluations(*[np.empty(0)] * 8), []) is None
