import math

import numpy as np
import pytest
from unit.report.fake_run import evaluated

from dragoman.diagnosis.learning.evaluations import Evaluations


def test_what_is_not_known_or_not_finite_is_nan():
    events = [
        evaluated(10, bleu=None, validation_loss=2.0),
        evaluated(20, bleu=12.5, validation_loss=math.inf),
        evaluated(30, bleu=13.0, validation_loss=1.5, train_sample_loss=1.25),
    ]
    found = Evaluations.from_events(events)
    assert len(found) == 3
    np.testing.assert_array_equal(found.step, [10, 20, 30])
    np.testing.assert_array_equal(found.validation_loss, [2.0, math.nan, 1.5])
    np.testing.assert_array_equal(found.bleu, [math.nan, 12.5, 13.0])
    np.testing.assert_array_equal(found.finite.step, [10, 30])
    assert found.where(found.step > 20).train_sample_loss.tolist() == [1.25]


def test_no_events_are_no_evaluations():
    assert len(Evaluations.from_events([]).finite) == 0


def test_the_error_of_bleu_is_that_of_its_intervals():
    events = [evaluated(10), evaluated(20, bleu_low=19.0, bleu_high=20.96)]
    assert Evaluations.from_events(events).bleu_error == pytest.approx(0.5)
    assert math.isnan(Evaluations.from_events(events[:1]).bleu_error)
