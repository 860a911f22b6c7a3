import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.checkpoints.frequency import FIRST_S, SHORTEST_S, SaveClock, SaveCost, save_interval_s

HOUR = 3600


def test_the_interval_is_the_square_root_of_cost_and_time_between_failures():
    cost = SaveCost(stall_s=2.0, slowdown=0.0, in_flight_s=3.0)
    interval_s = save_interval_s(cost, hours_between_failures=24, lost_minutes=1000)
    assert interval_s == pytest.approx(math.sqrt(2 * 2.0 * 24 * HOUR), rel=0.01)


def test_the_correction_is_dalys():
    # For a cost of a tenth of the time between failures Young's root is far off.
    cost = SaveCost(stall_s=360.0, slowdown=0.0, in_flight_s=0.0)
    interval_s = save_interval_s(cost, hours_between_failures=1, lost_minutes=1000)
    young_s = math.sqrt(2 * 360 * HOUR)
    expected_s = young_s * (1 + math.sqrt(0.05) / 3 + 0.05 / 9) - 360
    assert interval_s == pytest.approx(expected_s)
    # What is lost in saving and in failures is least there, and more on either side.

    def lost(interval_s):
        period_s = interval_s + 360
        return HOUR * math.expm1(period_s / HOUR) / interval_s

    assert lost(interval_s) < min(lost(interval_s / 1.3), lost(interval_s * 1.3))


def test_a_slowdown_counts_as_long_as_a_save_is_in_flight():
    slow = SaveCost(stall_s=1.0, slowdown=0.1, in_flight_s=10.0)
    still = SaveCost(stall_s=2.0, slowdown=0.0, in_flight_s=10.0)
    assert slow.seconds == still.seconds
    assert save_interval_s(slow, 24, 1000) == save_interval_s(still, 24, 1000)


def test_the_work_that_may_be_lost_bounds_interval_and_flight_together():
    cost = SaveCost(stall_s=30.0, slowdown=0.0, in_flight_s=20.0)
    assert save_interval_s(cost, 24, lost_minutes=2) == 100


def test_a_disk_is_left_alone_for_most_of_the_time_and_saves_never_overlap():
    free = SaveCost(stall_s=0.0, slowdown=0.0, in_flight_s=0.0)
    assert save_interval_s(free, 24, 10) == SHORTEST_S
    assert save_interval_s(free, 24, lost_minutes=0.05) == 3
    slow = SaveCost(stall_s=0.0, slowdown=0.0, in_flight_s=30.0)
    assert save_interval_s(slow, 24, lost_minutes=10) == 300
    assert save_interval_s(slow, 24, lost_minutes=0.1) == 30


def test_a_save_that_costs_more_than_failures_leave_time_for_is_made_once_a_failure():
    cost = SaveCost(stall_s=3 * HOUR, slowdown=0.0, in_flight_s=0.0)
    assert save_interval_s(cost, hours_between_failures=1, lost_minutes=1000) == HOUR


@given(
    stall_s=st.floats(0, 100),
    slowdown=st.floats(0, 1),
    in_flight_s=st.floats(0, 1000),
    hours=st.floats(0.01, 10_000),
    minutes=st.floats(0.01, 1000),
)
def test_the_bound_holds_wherever_the_disk_is_fast_enough(
    stall_s, slowdown, in_flight_s, hours, minutes
):
    interval_s = save_interval_s(SaveCost(stall_s, slowdown, in_flight_s), hours, minutes)
    assert interval_s >= in_flight_s
    if 2 * in_flight_s <= 60 * minutes:
        assert interval_s + in_flight_s <= 60 * minutes + 1e-6


def test_the_first_save_comes_soon_and_tells_when_the_next_is_due():
    clock = SaveClock(hours_between_failures=24, lost_minutes=10, now_s=1000.0)
    assert not clock.is_due(1000.0 + FIRST_S - 1)
    assert clock.is_due(1000.0 + FIRST_S)
    clock.begun(1060.0)
    for _ in range(5):
        clock.step(2.0, while_saving=False)
        clock.step(2.2, while_saving=True)
    clock.saved(stall_s=0.1, in_flight_s=5.0)
    expected_s = save_interval_s(SaveCost(0.1, 0.1, 5.0), 24, 10)
    assert clock.interval_s == pytest.approx(expected_s)
    assert not clock.is_due(1060.0 + clock.interval_s - 1)
    assert clock.is_due(1060.0 + clock.interval_s + 1)


def test_a_bound_below_the_first_interval_holds_from_the_start():
    assert SaveClock(24, lost_minutes=0.25, now_s=0.0).is_due(15.0)


def test_steps_that_are_faster_beside_a_save_are_no_gain():
    clock = SaveClock(24, 1000, now_s=0.0)
    clock.step(2.0, while_saving=False)
    clock.step(1.0, while_saving=True)
    clock.saved(stall_s=1.0, in_flight_s=5.0)
    assert clock.interval_s == save_interval_s(SaveCost(1.0, 0.0, 5.0), 24, 1000)


@pytest.mark.parametrize("step_s", [1.0, 100.0, 250.0, 299.0])
def test_the_bound_holds_when_steps_are_slow(step_s):
    clock = SaveClock(hours_between_failures=24, lost_minutes=10, now_s=0.0)
    cost = SaveCost(stall_s=2.0, slowdown=0.0, in_flight_s=2.0)
    assert save_interval_s(cost, 24, lost_minutes=1000) > 550, "the bound decides, not the cost"
    clock.saved(cost.stall_s, cost.in_flight_s)
    saved_at_s = most_lost_s = 0.0
    for step in range(1, 2000):
        now_s = step * step_s
        most_lost_s = max(most_lost_s, now_s - saved_at_s + cost.in_flight_s)
        if clock.is_due(now_s, next_step_s=step_s):
            clock.begun(now_s)
            saved_at_s = now_s
    assert most_lost_s <= 600
    assert most_lost_s > 600 - 2 * step_s - 10, "and not more often than it needs"


def test_steps_longer_than_the_bound_are_saved_one_by_one():
    clock = SaveClock(hours_between_failures=24, lost_minutes=1, now_s=0.0)
    clock.saved(stall_s=0.1, in_flight_s=1.0)
    assert clock.is_due(100.0, next_step_s=100.0)
    clock.begun(100.0)
    assert clock.is_due(200.0, next_step_s=100.0)


def test_a_save_that_failed_is_tried_again_soon_and_not_while_the_disk_is_to_rest():
    clock = SaveClock(hours_between_failures=1000, lost_minutes=100, now_s=0.0)
    clock.saved(stall_s=1.0, in_flight_s=5.0)
    assert clock.interval_s > 10 * FIRST_S
    clock.failed(in_flight_s=5.0)
    assert clock.interval_s == FIRST_S
    clock.failed(in_flight_s=60.0)
    assert clock.interval_s == 600
    clock.saved(stall_s=1.0, in_flight_s=5.0)
    assert clock.interval_s > 10 * FIRST_S
