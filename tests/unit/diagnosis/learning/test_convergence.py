from collections import Counter

import numpy as np
import pytest
from unit.report.fake_run import CONFIG

from dragoman.config import parse_config
from dragoman.diagnosis.learning.convergence import (
    Forecast,
    evaluations_missing,
    forecast_of,
    is_steady,
    rate_left_of,
    verdict_of,
)

SEEDS = range(200)


def look(curve, points=25, spread=0.006, seed=0, bleu=None) -> Forecast:
    shares = np.arange(1, points + 1) / points
    drawn = np.random.default_rng(seed)
    losses = curve(shares) + drawn.normal(0.0, spread, points)
    scores = 60 - 15 * curve(shares) if bleu is None else bleu(shares)
    scores = scores + drawn.normal(0.0, 0.2, points)
    forecast = forecast_of(shares * 1e9, losses, scores, np.ones(points, dtype=bool))
    assert forecast is not None
    return forecast


def falling(shares):
    """0.010 nats in the next quarter."""
    return 1.5 + 0.08 * shares**-0.6


def at_rest(shares):
    return 1.5 + np.exp(-10 * shares)


def flat(shares):
    return np.full_like(shares, 1.5)


@pytest.mark.parametrize(
    ("curve", "right", "least"),
    [(falling, "not yet", 0.95), (at_rest, "yes", 0.95), (flat, "yes", 0.95)],
)
@pytest.mark.parametrize("points", [10, 40])
def test_noise_seldom_changes_the_verdict(curve, right, least, points):
    verdicts = Counter(verdict_of(look(curve, points, seed=seed))[0] for seed in SEEDS)
    assert verdicts[right] / len(SEEDS) >= least, verdicts


def test_much_noise_is_said_to_hide_the_trend_rather_than_guessed_through():
    verdicts = Counter(verdict_of(look(falling, 7, 0.03, seed))[0] for seed in SEEDS)
    assert verdicts["too early to say"] > len(SEEDS) / 2
    unsure = [
        forecast
        for seed in SEEDS
        if verdict_of(forecast := look(falling, 7, 0.03, seed))[0] == "too early to say"
    ]
    assert all(evaluations_missing(forecast) >= 2 for forecast in unsure)


def test_bleu_follows_the_loss_as_it_did():
    gains = [look(falling, 40, 0.003, seed).bleu_gain() for seed in range(20)]
    values = [gain.value for gain in gains if gain is not None]
    assert len(values) == 20
    assert np.mean(values) == pytest.approx(15 * 0.0100, rel=0.25)
    assert all(gain.low <= gain.value <= gain.high for gain in gains if gain)


def test_where_bleu_and_loss_have_nothing_in_common_no_bleu_is_promised():
    promised = [look(flat, seed=seed).bleu_gain() is not None for seed in SEEDS]
    assert np.mean(promised) < 0.1


def test_bleu_that_still_rises_outweighs_a_loss_at_rest():
    verdict, _ = verdict_of(look(flat, 40, 0.002, bleu=lambda shares: 20 + 8 * shares))
    assert verdict == "not yet"


def test_what_falls_because_the_rate_falls_is_left_out():
    shares = np.arange(1, 41) / 40
    losses = 1.5 + 0.0 * shares - 0.3 * np.maximum(0.0, shares - 0.6)
    forecast = forecast_of(shares, losses, np.full(40, np.nan), shares <= 0.6)
    assert forecast is not None
    assert forecast.gain().value < 0.001
    assert not forecast.is_at_rest
    assert forecast.bleu_gain() is None


def test_the_next_stretch_brings_no_more_than_the_last_one_did():
    def suddenly_at_rest(shares):
        return 1.5 + 0.3 * np.maximum(0.0, 0.65 - shares)

    forecast = look(suddenly_at_rest, 12, 0.0005)
    assert forecast.fit.gain(0.25).high > 0.01
    assert forecast.gain().high < 0.005
    assert forecast.gain(0.5).value <= forecast.gain(0.5).high < 0.01


def config(kind):
    schedule = f"schedule.kind={kind}", "schedule.peak=1e-3", "schedule.warmup_steps=0"
    return parse_config(CONFIG, "x", ["training.steps=1000", *schedule])


@pytest.mark.parametrize("kind", ["noam", "inverse-square-root", "constant"])
def test_schedules_without_an_end_are_steady_throughout(kind):
    assert rate_left_of(config(kind), 1000) is None
    assert is_steady(config(kind), np.arange(100.0, 1001, 100)).all()


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_a_rate_that_falls_to_its_end_is_steady_in_its_first_half(kind):
    left = [rate_left_of(config(kind), step) for step in (1, 500, 1000)]
    assert left == pytest.approx([1.0, 0.5, 0.0], abs=0.01)
    steps = np.arange(50.0, 1001, 50)
    assert is_steady(config(kind), steps).tolist() == (steps <= 500).tolist()
    assert is_steady(config(kind), steps[8:]).all()  # too few of them are steady


@pytest.mark.parametrize("points", [6, 8, 12, 40])
@pytest.mark.parametrize(("wobble", "bleu_wobble"), [(0.004, 0.15), (0.01, 0.5), (0.006, 1.0)])
def test_what_happens_to_bleu_is_in_the_interval(points, wobble, bleu_wobble):
    """The interval is for an evaluation to come, so it must hold what is measured then."""
    inside = []
    for seed in SEEDS:
        drawn = np.random.default_rng(seed)
        shares = np.append(np.arange(1, points + 1) / points, 1.25)
        losses = 1.3 + 0.4 * shares**-0.5 + drawn.normal(0.0, wobble, points + 1)
        scores = 45 * np.exp(-0.5 * (losses - 1.2)) + drawn.normal(0.0, bleu_wobble, points + 1)
        forecast = forecast_of(
            shares[:-1], losses[:-1], scores[:-1], np.ones(points, dtype=bool), bleu_error=0.5
        )
        assert forecast is not None
        if gain := forecast.bleu_gain():
            inside.append(gain.low <= scores[-1] - scores[-2] <= gain.high)
    assert len(inside) > 20
    assert np.mean(inside) >= 0.9


def test_few_points_on_a_line_promise_no_more_than_evaluations_hold():
    shares = np.arange(1, 9) / 8
    losses = 1.3 + 0.4 * shares**-0.5
    every = np.ones(8, dtype=bool)
    exact = forecast_of(shares, losses, 60 - 15 * losses, every)
    rough = forecast_of(shares, losses, 60 - 15 * losses, every, bleu_error=1.0)
    assert exact is not None
    assert rough is not None
    widths = [gain.high - gain.low for gain in (exact.bleu_gain(), rough.bleu_gain()) if gain]
    assert widths[1] > widths[0] + 0.5


def test_bleu_that_takes_off_may_rise_faster():
    shares = np.arange(1, 41) / 40
    losses = 2.0 + shares**-1.0
    forecast = forecast_of(
        shares, losses, 40 / (1 + np.exp(2 * (losses - 1.8))), np.ones(40, dtype=bool)
    )
    assert forecast is not None
    assert forecast.bleu_steepening > 1.1
    gain = forecast.bleu_gain()
    assert gain is not None
    assert gain.high - gain.value > gain.value - gain.low
