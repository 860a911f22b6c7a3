import pytest

from dragoman.config import ScheduleSettings
from dragoman.plan.learning_rate import rate_curve, sparkline


def test_noam_is_explained_with_its_peak_and_that_2_is_no_rate():
    curve = rate_curve(ScheduleSettings(), width=512, last_step=300_000)
    words = " ".join(curve.sentences)

    assert (curve.peak_step, curve.peak_rate) == (8000, pytest.approx(9.88e-4, rel=1e-3))
    assert max(curve.rates) == curve.peak_rate
    assert "schedule.scale = 2 is a scale and not a rate" in words
    assert "0.000988" in words
    assert "schedule.warmup_steps" in words


@pytest.mark.parametrize("kind", ["inverse-square-root", "cosine", "linear", "constant"])
def test_every_other_kind_names_the_key_of_its_peak(kind):
    settings = ScheduleSettings(kind=kind, peak=0.003, warmup_steps=100)
    curve = rate_curve(settings, width=512, last_step=1000)

    assert curve.peak_rate == pytest.approx(0.003)
    assert "schedule.peak = 0.003" in " ".join(curve.sentences)
    assert curve.steps[0] == 1
    assert curve.steps[-1] == 1000


def test_a_run_that_ends_within_the_warm_up_is_told():
    curve = rate_curve(ScheduleSettings(), width=512, last_step=500)
    assert curve.peak_step == 500
    assert "within the warm-up" in curve.sentences[0]


def test_a_tail_is_explained_with_its_steps_and_rates():
    settings = ScheduleSettings(kind="linear", peak=0.003, warmup_steps=10, tails=((500, 0.001),))
    words = " ".join(rate_curve(settings, width=512, last_step=800).sentences)
    for fact in ("to 0 at step 500", "After step 500", "from 0.001 to 0 at step 800"):
        assert fact in words


def test_without_an_end_the_curve_still_has_one():
    assert rate_curve(ScheduleSettings(), 512, None).steps[-1] == 40_000


def test_a_sparkline_rises_and_falls():
    assert sparkline([0.0, 1.0, 2.0, 1.0], 4) == "▁▅█▅"
    assert len(sparkline([1.0, 2.0], 10)) == 10
    assert sparkline([0.0, 0.0], 2) == "▁▁"
