import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.forecast.quantity import (
    Quantity,
    assumed,
    exact,
    measured,
    repeated,
    trimmed_mean,
    widened,
)

SECONDS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9)


@given(SECONDS, st.floats(0, 0.5))
def test_intervals_of_measurements_are_in_order_and_above_zero(samples, width):
    found = measured(samples, "steps", width)

    assert 0 < found.low <= found.value <= found.high
    assert found.is_measured


def test_a_single_measurement_has_the_least_width():
    assert measured([2.0], "one", 0.1)[:3] == pytest.approx((2.0, 1.8, 2.2))


def test_the_spread_of_measurements_is_in_the_interval():
    found = measured([1.0, 1.2, 1.4], "three", 0.01)
    assert (found.low, found.high) == pytest.approx((0.8, 1.6))


def test_one_disturbed_step_hardly_moves_what_steps_usually_take_but_widens_it():
    steady, disturbed = [1.0, 1.01, 0.99, 1.0] * 2, [1.0, 1.01, 0.99, 1.0, 1.0, 1.01, 0.99, 3.0]
    calm, rough = repeated(steady, "steps", 0.17), repeated(disturbed, "steps", 0.17)
    assert rough.value == pytest.approx(calm.value, rel=0.01)
    assert calm.high == pytest.approx(1.17, rel=0.01)
    assert rough.high > 2.0


@given(SECONDS, st.floats(0, 0.5))
def test_intervals_of_repetitions_are_in_order_and_above_zero(samples, width):
    found = repeated(samples, "steps", width)
    assert 0 < found.low <= found.value <= found.high
    assert min(samples) * 0.999 <= found.value <= max(samples) * 1.001


def test_few_repetitions_all_count():
    assert trimmed_mean([1.0, 2.0, 6.0]) == pytest.approx(3.0)
    assert trimmed_mean([1.0, 2.0, 4.0, 60.0]) == pytest.approx(3.0)


def test_errors_that_do_not_know_of_each_other_add_up_by_their_squares():
    known = Quantity(10.0, 7.0, 13.0, True, "steps")
    assert widened(known, 0.4)[:3] == pytest.approx((10.0, 5.0, 15.0))
    assert widened(known, 9.0).low == pytest.approx(2.5)
    assert widened(known, 0.0) == known


def test_an_assumption_may_be_off_by_a_factor_to_both_sides():
    assert assumed(10.0, 1.0, "guess") == Quantity(10.0, 5.0, 20.0, False, "guess")


def test_a_change_that_reverses_the_order_leaves_an_ordered_interval():
    assert assumed(10.0, 1.0, "guess").map(lambda rate: 100 / rate)[:3] == (10.0, 5.0, 20.0)


def test_what_was_set_has_no_spread():
    assert exact(3.0, "set") == Quantity(3.0, 3.0, 3.0, False, "set")
