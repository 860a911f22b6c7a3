import pytest
from unit.report.fake_run import CONFIG

from dragoman.config import parse_config
from dragoman.diagnosis.learning.rate_level import FAR_TOO_HIGH, HIGH, lower_rate, rate_level_of
from dragoman.recipes import find_recipe


def config(*settings):
    return parse_config(CONFIG, "x", ["training.steps=300000", *settings])


@pytest.mark.parametrize("name", ["demo", "multi30k", "wmt16-en-de"])
def test_shipped_recipes_have_usual_rates(name):
    recipe = parse_config(find_recipe(name).read_text(), name)
    assert 0.3 < rate_level_of(recipe).times_usual <= 1.0


@pytest.mark.parametrize(
    ("settings", "times"),
    [
        (("schedule.scale=20.0",), 10.0),
        (("schedule.scale=2.0",), 1.0),
        (("schedule.kind=inverse-square-root", "schedule.peak=7e-4"), 0.71),
        (("schedule.kind=cosine", "schedule.peak=1e-2", "schedule.warmup_steps=4000"), 7.2),
        (("schedule.kind=constant", "schedule.peak=3e-4"), 0.3),
        (("optimizer.kind=muon",), 1.0),
        (("optimizer.kind=muon", "optimizer.muon_rate_factor=3.0"), 3.0),
        (("optimizer.kind=muon", "optimizer.muon_rate_factor=0.5"), 1.0),
    ],
)
def test_a_rate_is_compared_with_what_width_and_warm_up_allow(settings, times):
    assert rate_level_of(config(*settings)).times_usual == pytest.approx(times, rel=0.02)


def test_a_peak_that_is_soon_over_is_compared_a_little_later():
    level = rate_level_of(config("schedule.warmup_steps=0"))
    assert level.step == 1000
    assert level.times_usual == pytest.approx(1.0)


def test_ten_times_too_high_is_far_too_high_and_the_lower_one_is_usual():
    high = config("schedule.scale=20.0")
    assert rate_level_of(high).times_usual > FAR_TOO_HIGH > HIGH
    assert lower_rate(high) == {"schedule.scale": 2.0}
    assert lower_rate(config("schedule.scale=1.0")) == {"schedule.scale": 0.5}
    assert lower_rate(config("schedule.kind=linear", "schedule.peak=1e-3")) == {
        "schedule.peak": 5e-4
    }
