import math

import numpy as np
import pytest
from unit.diagnosis.learning_run import noise

from dragoman.diagnosis.learning.rises import rise_of, wander_of


def noisy(values, spread, seed):
    return values + noise(len(values), spread, seed)


def wavering(count, spread, kept, seed):
    """Noise of which a share is kept from each point to the next."""
    fresh = noise(count, spread, seed)
    values = np.copy(fresh)
    for place in range(1, count):
        values[place] = kept * values[place - 1] + math.sqrt(1 - kept**2) * fresh[place]
    return values


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_far_points_wander_further_apart_where_noise_is_kept(kept):
    places = np.arange(400)
    curve = 2.0 + 0.002 * np.abs(places - 200)
    found = [
        [
            wander_of(curve + wavering(400, 0.01, kept, seed), 200, apart, averaged=(1, 1))
            for apart in (1, 100)
        ]
        for seed in range(20)
    ]
    near, far = np.mean(found, axis=0)
    assert near == pytest.approx(0.01 * math.sqrt(2 * (1 - kept)), rel=0.1)
    # Not less than the truth, and not by much more: few points look too independent.
    assert 0.95 <= far / (0.01 * math.sqrt(2)) <= 1.5


@pytest.mark.parametrize("kept", [0.0, 0.8])
def test_means_of_three_wander_less_where_neighbors_are_independent(kept):
    found = [
        [
            wander_of(wavering(400, 0.01, kept, seed), 200, 100, averaged)
            for averaged in ((1, 1), (3, 3))
        ]
        for seed in range(20)
    ]
    of_points, of_means = np.mean(found, axis=0)
    truth = math.sqrt((3 + 4 * kept + 2 * kept**2) / 9)
    assert truth * 0.95 <= of_means / of_points <= truth * 1.15


@pytest.mark.parametrize("values", [[1.0, 1.0], [1.0, math.nan, 1.0, 1.0], [1.0, 1e308, 1e308]])
def test_what_cannot_be_measured_wanders_nobody_knows_how_far(values):
    assert math.isnan(wander_of(np.array(values), 1, 2, (1, 1)))


def test_a_level_stretch_before_the_rise_is_no_noise():
    places = np.arange(20)
    curve = 2.0 + 0.05 * np.maximum(0, places - 11)
    assert wander_of(noisy(curve, 0.005, 3), 3, 8, (1, 1)) < 0.03


def test_one_bad_evaluation_does_not_hide_a_rise():
    values = noisy(2.0 + 0.02 * np.abs(np.arange(25) - 10), 0.002, 8)
    values[16] += 1.5
    rise = rise_of(values)
    assert rise is not None
    assert rise.spreads > 8


def test_a_rise_begins_where_the_curve_left_its_lowest_level():
    values = np.concatenate([np.linspace(3.0, 2.0, 10), np.full(5, 2.0), np.linspace(2.0, 2.3, 10)])
    rise = rise_of(noisy(values, 0.002, 5))
    assert rise is not None
    assert 13 <= rise.lowest <= 16
    assert rise.rise == pytest.approx(0.27, abs=0.02)
    assert rise.spreads > 15
    assert rise_of(values[:2]) is None


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
