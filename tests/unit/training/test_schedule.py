import math

import pytest

from dragoman.config import ScheduleSettings, SyncSettings, parse_config
from dragoman.training.schedule import (
    LARGEST_OWN_FACTOR,
    learning_rate,
    own_step_factor,
    peak_of,
)


def test_noam_with_scale_two_peaks_where_the_paper_says():
    settings = ScheduleSettings(kind="noam", scale=2.0, warmup_steps=8000)
    rate = learning_rate(settings, 512, None)
    assert rate(8000) == pytest.approx(9.882e-4, rel=1e-4)
    assert rate(4000) == pytest.approx(rate(8000) / 2)
    assert rate(32_000) == pytest.approx(rate(8000) / 2)
    assert peak_of(settings, 512, 300_000) == (8000, rate(8000))
    assert peak_of(settings, 512, 1000) == (1000, rate(1000))


@pytest.mark.parametrize("kind", ["inverse-square-root", "cosine", "linear", "constant"])
def test_warm_up_is_a_straight_line_to_the_peak(kind):
    settings = ScheduleSettings(kind=kind, peak=0.01, warmup_steps=100)
    rate = learning_rate(settings, 512, 1000)
    assert rate(1) == pytest.approx(0.0001)
    assert rate(50) == pytest.approx(0.005)
    assert rate(100) == pytest.approx(0.01)
    assert max(rate(step) for step in range(1, 1001)) == pytest.approx(0.01)


def test_each_schedule_ends_where_it_should():
    def at(kind, step, **more):
        settings = ScheduleSettings(kind=kind, peak=0.01, warmup_steps=100, **more)
        return learning_rate(settings, 512, 1100)(step)

    assert at("inverse-square-root", 400) == pytest.approx(0.005)
    assert at("cosine", 600) == pytest.approx(0.005)
    assert at("cosine", 1100, final=0.001) == pytest.approx(0.001)
    assert at("linear", 600) == pytest.approx(0.005)
    assert at("linear", 1100) == pytest.approx(0.0)
    assert at("linear", 2000) == pytest.approx(0.0)
    assert at("constant", 1100) == pytest.approx(0.01)


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_a_tail_leaves_the_curve_before_it_and_falls_from_its_own_rate(kind):
    settings = {"kind": kind, "peak": 0.01, "warmup_steps": 100, "final": 0.001}
    before = learning_rate(ScheduleSettings(**settings), 512, 1000)
    tails = ((1000, 0.005), (1400, 0.003))
    after = learning_rate(ScheduleSettings(**settings, tails=tails), 512, 2000)
    assert [after(step) for step in range(1, 1001)] == [before(step) for step in range(1, 1001)]
    assert after(1001) == pytest.approx(0.005 - 0.004 / 400)
    assert after(1200) == pytest.approx(0.003)
    assert after(1400) == pytest.approx(0.001)
    assert after(1401) == pytest.approx(0.003 - 0.002 / 600)
    assert after(2000) == pytest.approx(0.001)
    assert after(3000) == pytest.approx(0.001)


@pytest.mark.parametrize("kind", ["noam", "inverse-square-root", "cosine", "linear", "constant"])
def test_no_warm_up_and_no_step_gives_a_rate_that_is_not_finite(kind):
    settings = ScheduleSettings(kind=kind, warmup_steps=0)
    rates = [learning_rate(settings, 512, 50)(step) for step in range(1, 101)]
    assert all(math.isfinite(rate) and rate >= 0 for rate in rates)


@pytest.mark.parametrize("kind", ["noam", "inverse-square-root", "cosine", "linear", "constant"])
def test_larger_updates_have_the_rate_of_the_same_tokens_times_the_root(digits, kind):
    text = digits.read_text(encoding="utf-8")
    shape = [f"schedule.kind={kind}", "schedule.warmup_steps=40", "training.steps=400"]
    plain = parse_config(text, "x", shape)
    larger = parse_config(text, "x", [*shape, "sync.mode=accumulate", "sync.accumulate=4"])
    before, after = (
        learning_rate(config.schedule, config.model.width, config.training.steps)
        for config in (plain, larger)
    )
    for step in (1, 5, 10, 11, 50, 100):
        assert after(step) == pytest.approx(2 * before(4 * step))


@pytest.mark.parametrize(
    ("sync", "islands", "factor"),
    [
        ({"mode": "fp32"}, 4, 1),
        ({"mode": "bf16"}, 4, 1),
        ({"mode": "local"}, 1, 1),
        ({"mode": "local"}, 2, math.sqrt(2)),
        ({"mode": "diloco"}, 4, 2),
        ({"mode": "local"}, 64, LARGEST_OWN_FACTOR),
        ({"mode": "local", "rate_factor": 1.2}, 64, 1.2),
    ],
)
def test_steps_taken_alone_make_up_for_the_noise_of_a_smaller_batch(sync, islands, factor):
    assert own_step_factor(SyncSettings(**sync), islands) == pytest.approx(factor)
