import numpy as np
import pytest

from dragoman.diagnosis.speed.intermittent import intermittent

COMPUTING_S = 1.0


def steps(is_bad, bad_s=2.0, usual_s=0.05, spread=0.1):
    """Waiting and length of steps, with some scatter."""
    chance = np.random.default_rng(7)
    waits_s = np.where(is_bad, bad_s, usual_s) * np.exp(chance.normal(0, spread, len(is_bad)))
    return waits_s, COMPUTING_S + waits_s


def scattered(share, count=300):
    return np.random.default_rng(5).random(count) < share


@pytest.mark.parametrize("share", [0.04, 0.31, 0.45])
def test_waiting_that_comes_and_goes_has_its_share_of_the_steps(share):
    is_bad = scattered(share)
    found = intermittent(*steps(is_bad))

    assert np.array_equal(found.is_bad, is_bad)
    assert found.step_share == pytest.approx(is_bad.mean())
    assert found.bad_s == pytest.approx(2.0, rel=0.05)
    assert (found.usual_step_s, found.bad_step_s) == pytest.approx((1.05, 3.0), rel=0.05)


@pytest.mark.parametrize(
    "waits",
    [
        steps(np.zeros(300, dtype=bool)),
        steps(np.zeros(300, dtype=bool), usual_s=1.0, spread=0.3),  # one kind with a long tail
        steps(scattered(0.8)),  # the bad ones are the usual ones
        steps(np.arange(300) >= 200),  # one phase
        steps(np.arange(300) // 100 == 1),
        steps(scattered(0.3), bad_s=0.15),  # too short to matter
        steps(scattered(0.3, count=20)),
    ],
)
def test_steps_that_are_alike_or_change_once_are_not_intermittent(waits):
    assert intermittent(*waits) is None


def test_bad_times_that_come_back_again_and_again_are_intermittent():
    found = intermittent(*steps(np.arange(300) % 60 < 10))

    assert found.step_share == pytest.approx(1 / 6)


def test_what_was_not_recorded_counts_as_no_waiting():
    waits_s, step_s = steps(scattered(0.3))
    waits_s[0] = np.nan

    assert intermittent(waits_s, step_s) is not None
