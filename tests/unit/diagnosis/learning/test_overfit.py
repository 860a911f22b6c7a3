import math
from collections import Counter

import numpy as np
import pytest
from unit.diagnosis.learning_run import noise

from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.overfit import overfit_of, rise_of, wander_of

SEEDS = range(200)


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


def evaluations(validation, train_sample, bleu=None) -> Evaluations:
    nothing = np.full(len(validation), math.nan)
    steps = 1000.0 * np.arange(1, len(validation) + 1)
    scores = nothing if bleu is None else bleu
    return Evaluations(steps, validation, train_sample, scores, *[nothing] * 4)


def state(validation, train_sample) -> str:
    found = overfit_of(evaluations(validation, train_sample))
    assert found is not None
    return found.state


def states(validation, train_sample, points, spread) -> Counter[str]:
    shares = np.arange(1, points + 1) / points
    return Counter(
        state(
            validation(shares) + noise(points, spread, 2 * seed),
            train_sample(shares) + noise(points, spread, 2 * seed + 1),
        )
        for seed in SEEDS
    )


def falling(shares):
    return 2.0 - 0.5 * shares


@pytest.mark.parametrize("points", [4, 8, 20, 60])
@pytest.mark.parametrize("spread", [0.003, 0.01, 0.03])
def test_a_plateau_with_noise_is_seldom_taken_for_overfitting(points, spread):
    found = states(lambda shares: np.full_like(shares, 2.0), falling, points, spread)
    assert found["overfitting"] / len(SEEDS) <= 0.025, found


@pytest.mark.parametrize(("points", "most"), [(12, 0.1), (20, 0.06), (40, 0.05)])
@pytest.mark.parametrize("kept", [0.3, 0.5, 0.7, 0.8])
def test_a_plateau_that_wavers_slowly_is_seldom_taken_for_overfitting(points, kept, most):
    """Neighbors that err alike look like a trend, and a dozen points cannot tell that they do."""
    found = Counter()
    for seed in SEEDS:
        sample = np.linspace(2.0, 1.5, points) + noise(points, 0.01, seed + 1000)
        found[state(2.0 + wavering(points, 0.03, kept, seed), sample)] += 1
    assert found["overfitting"] / len(SEEDS) <= most, found


@pytest.mark.parametrize("points", [6, 25])
def test_a_gap_that_widens_while_both_fall_is_never_overfitting(points):
    found = states(lambda shares: 2.0 + 0.1 * shares**-0.5, falling, points, 0.01)
    assert found["overfitting"] == 0
    none = ("at its lowest", "within noise", "small rise")
    assert sum(found[each] for each in none) >= 0.99 * len(SEEDS), found


@pytest.mark.parametrize(("points", "spread"), [(10, 0.005), (25, 0.01), (60, 0.02)])
def test_a_rise_is_found_under_noise(points, spread):
    found = states(lambda shares: 2.0 + 0.5 * np.abs(shares - 0.5), falling, points, spread)
    assert found["overfitting"] / len(SEEDS) >= 0.95, found


def test_a_run_that_falls_apart_is_something_else():
    def rising(shares):
        return 2.0 + np.maximum(0.0, shares - 0.6)

    assert states(rising, rising, 20, 0.005) == {"both rise": len(SEEDS)}


def test_without_a_training_sample_a_clear_rise_is_unexplained():
    validation = 2.0 + 0.02 * np.abs(np.arange(25) - 10) + noise(25, 0.002, 1)
    assert state(validation, np.full(25, math.nan)) == "unexplained"
    assert state(validation[:11], np.full(11, math.nan)) == "at its lowest"


@pytest.mark.parametrize(
    ("fallen_to", "then", "reason"),
    [
        (2.0, [2.0, 1.99], "at its lowest"),
        (2.0, [2.3] * 4 + [2.0] * 5 + [2.1, 2.2, 2.3, 2.3, 2.3], "within noise"),
        (2.0, [2.0, 2.0, 2.0, 2.012, 2.014, 2.015, 2.015, 2.016], "small rise"),
        (2.5, [2.7] * 3 + [2.1] + [2.0] * 4 + [2.05, 2.1, 2.15, 2.2], "passed before"),
    ],
)
def test_why_a_run_is_not_overfitting(fallen_to, then, reason):
    validation = np.concatenate([np.linspace(3.0, fallen_to, 11), then])
    validation += noise(len(validation), 0.0005, 1)
    assert state(validation, np.linspace(3.0, 1.0, len(validation))) == reason


def test_two_evaluations_are_too_few():
    assert overfit_of(evaluations(np.ones(2), np.ones(2))) is None


def test_bleu_is_followed_since_the_lowest_loss():
    validation = 2.0 + 0.02 * np.abs(np.arange(25) - 10) + noise(25, 0.002, 1)
    falls, rises = (
        overfit_of(evaluations(validation, 2.0 - 0.01 * np.arange(25), bleu))
        for bleu in (np.linspace(25, 20, 25), np.linspace(20, 25, 25))
    )
    assert falls is not None
    assert rises is not None
    assert falls.lowest_step == pytest.approx(11_000, abs=1000)
    assert (falls.bleu_falls, falls.bleu_rises) == (True, False)
    assert (rises.bleu_falls, rises.bleu_rises) == (False, True)
