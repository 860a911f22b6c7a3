import math

import numpy as np
import pytest
from unit.diagnosis.learning_run import noise

from dragoman.diagnosis.rises import noise_of, rise_of


def noisy(values, spread, seed):
    return values + noise(len(values), spread, seed)


def test_noise_is_told_apart_from_the_curve():
    shares = np.linspace(0.1, 1.0, 400)
    assert noise_of(noisy(2.0 + 0.4 * shares**-0.6, 0.01, 4)) == pytest.approx(0.01, rel=0.15)
    assert noise_of(np.ones(2)) == math.inf


def test_a_rise_begins_where_the_curve_left_its_lowest_level():
    values = np.concatenate([np.linspace(3.0, 2.0, 10), np.full(5, 2.0), np.linspace(2.0, 2.3, 10)])
    rise = rise_of(noisy(values, 0.002, 5))
    assert rise is not None
    assert 13 <= rise.lowest <= 16
    assert rise.rise == pytest.approx(0.27, abs=0.02)
    assert rise.spreads > 15
    assert rise_of(values[:2]) is None


def test_what_wavers_slowly_is_noise_too():
    slow = np.convolve(noise(204, 0.02, 6), np.ones(5) / 5, "valid")
    truly = 0.02 / math.sqrt(5)
    assert noise_of(2.0 + slow) == pytest.approx(truly, rel=0.3)


def test_an_earlier_rise_that_passed_is_remembered():
    values = np.array([3.0, 2.5, 2.5, 2.5, 2.8, 2.8, 2.8, 2.2, 2.0, 2.0, 2.0, 2.1, 2.1])
    rise = rise_of(values)
    assert rise is not None
    assert rise.passed == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(("points", "turn"), [(12, 7), (20, 12), (34, 24)])
def test_a_steep_fall_before_is_not_noise(points, turn):
    """A loss that halves within a few evaluations bends more than the rise after it is high."""
    places = np.arange(1.0, points + 1)
    fall = 0.65 + 5.9 * (np.minimum(places, turn) * 6 / points) ** -1.09
    rise = rise_of(noisy(fall + 0.013 * np.maximum(0.0, places - turn), 0.002, 7))
    assert rise is not None
    assert rise.lowest == pytest.approx(turn - 1, abs=1)
    assert rise.spreads > 8


def test_the_last_low_point_before_a_jump_is_the_lowest():
    rise = rise_of(np.array([3.0, 2.5, 2.2, 2.0, 1.9, 1.85, 1.82, 1.8, 7.5, 7.5, 7.5]))
    assert rise is not None
    assert rise.lowest == 7
    assert rise.passed == pytest.approx(0.0, abs=0.02)
