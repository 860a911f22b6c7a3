import numpy as np
import pytest

from dragoman.diagnosis.speed.series import correlation, mean_of


@pytest.fixture
def chance():
    return np.random.default_rng(6)


def test_a_correlation_lies_within_its_interval(chance):
    common, own = chance.normal(size=(2, 4000))
    found = correlation(common, 0.6 * common + 0.8 * own)

    assert found.low < 0.6 < found.high
    assert found.high - found.low < 0.1


def test_series_without_anything_in_common_have_an_interval_around_zero(chance):
    found = correlation(chance.normal(size=500), chance.normal(size=500))

    assert found.low < 0 < found.high


def test_two_slow_waves_say_less_than_as_many_throws_of_dice(chance):
    first, second = np.cumsum(chance.normal(size=(2, 2000)), axis=1)
    found = correlation(first, second)

    assert found.high - found.low > 0.3


def test_what_does_not_vary_correlates_with_nothing():
    assert correlation(np.arange(10.0), np.full(10, 3.0)) is None
    assert correlation(np.arange(3.0), np.arange(3.0)) is None


def test_what_is_the_same_correlates_fully():
    found = correlation(np.arange(10.0), 2 * np.arange(10.0))

    assert found.value == pytest.approx(1.0)


def test_a_mean_has_the_interval_of_its_scatter(chance):
    found = mean_of(chance.normal(5.0, 1.0, size=10_000))

    assert found.low < 5.0 < found.high
    assert found.high - found.low == pytest.approx(4 * 1.0 / 100, rel=0.1)
