import numpy as np
import pytest

from dragoman.diagnosis.learning.power_law import LEAST_POINTS, fit_end, fit_power_law

SEEDS = range(200)


def curve(shares, floor=1.5, amount=0.08, exponent=0.6):
    return floor + amount * shares**-exponent


def noisy(values, spread, seed):
    return values + np.random.default_rng(seed).normal(0.0, spread, len(values))


def test_a_power_law_is_found_again():
    shares = np.linspace(0.2, 1.0, 30)
    fit = fit_power_law(shares * 1e9, curve(shares))
    assert fit is not None
    assert (fit.floor, fit.amount) == pytest.approx((1.5, 0.08), abs=0.005)
    assert fit.exponent == pytest.approx(0.6, rel=0.05)
    gain = fit.gain(0.25)
    assert gain.value == pytest.approx(curve(1.0) - curve(1.25), rel=0.02)
    assert gain.low < gain.value < gain.high


def test_a_gain_from_a_later_point_is_smaller():
    shares = np.linspace(0.2, 1.0, 30)
    fit = fit_power_law(shares, curve(shares))
    assert fit is not None
    later = fit.gain(0.25, now=2.0)
    assert later.value == pytest.approx(curve(2.0) - curve(2.5), rel=0.05)


@pytest.mark.parametrize(("points", "spread"), [(8, 0.003), (12, 0.01), (40, 0.01)])
def test_intervals_hold_the_truth_nineteen_times_out_of_twenty(points, spread):
    shares = np.linspace(0.2, 1.0, points)
    truth = float(curve(1.0) - curve(1.25))
    held = 0
    for seed in SEEDS:
        fit = fit_power_law(shares, noisy(curve(shares), spread, seed))
        assert fit is not None
        gain = fit.gain(0.25)
        held += gain.low <= truth <= gain.high
    assert held / len(SEEDS) >= 0.92


def test_one_bad_evaluation_does_not_bend_the_curve():
    shares = np.linspace(0.2, 1.0, 20)
    losses = noisy(curve(shares), 0.002, 1)
    losses[-3] += 0.5
    fit = fit_power_law(shares, losses)
    assert fit is not None
    assert fit.gain(0.25).value == pytest.approx(curve(1.0) - curve(1.25), rel=0.3)


def test_a_curve_that_rises_promises_nothing():
    shares = np.linspace(0.2, 1.0, 20)
    fit = fit_power_law(shares, 1.0 + 0.3 * shares)
    assert fit is not None
    assert fit.gain(0.25)[:2] == (0.0, 0.0)


@pytest.mark.parametrize("tokens", [[], [1.0], [1.0] * 9, list(range(1, LEAST_POINTS))])
def test_too_few_points_make_no_curve(tokens):
    numbers = np.array(tokens, dtype=float)
    assert fit_power_law(numbers, np.ones_like(numbers)) is None
    assert fit_end(numbers, np.ones_like(numbers)) is None


def test_what_fell_early_does_not_count_where_another_law_holds_now():
    shares = np.linspace(0.02, 1.0, 50)
    losses = 1.5 + 0.5 * np.maximum(0.0, 0.45 - shares)  # at rest since 45 %
    fit = fit_end(shares, noisy(losses, 0.002, 2))
    assert fit is not None
    assert fit.points < 40
    assert fit.gain(0.25).value < 0.003
