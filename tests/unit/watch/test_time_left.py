import random

import pytest

from dragoman.diagnosis.learning.robust_fit import t_97_5
from dragoman.watch.time_left import MOST_BLOCKS, T_97_5, Pace, evaluations_left, time_left


def test_students_t_is_that_of_the_diagnosis():
    exact = [t_97_5(degrees) for degrees in range(1, MOST_BLOCKS)]
    assert pytest.approx(exact, abs=0.001) == list(T_97_5)


def test_steady_steps_leave_no_doubt():
    left = time_left([Pace(4, 2.0)] * 50, steps=100, more_s=7.0)
    assert left == pytest.approx((57.0, 57.0, 57.0))


def test_nothing_is_known_before_the_first_step():
    assert time_left([], 100) is None
    assert time_left([Pace(0, 0.0)], 100) is None


def test_few_paces_have_no_interval():
    left = time_left([Pace(1, 1.0), Pace(1, 3.0)], 10)
    assert left == (20.0, 20.0, 20.0)


def test_nothing_left_takes_no_time():
    assert time_left([Pace(1, 1.0), Pace(1, 3.0), Pace(1, 2.0)], 0) == (0.0, 0.0, 0.0)


def correlated(chance: random.Random, count: int) -> list[float]:
    """Seconds of steps, in which a disturbance fades slowly."""
    level, found = 0.0, []
    for _ in range(count):
        level = 0.9 * level + chance.gauss(0, 0.03)
        found.append(1.0 + level)
    return found


def test_the_interval_holds_the_truth_about_as_often_as_it_says_although_neighbors_are_alike():
    chance = random.Random(5)
    held = 0
    for _ in range(400):
        seconds = correlated(chance, 900)
        left = time_left([Pace(1, s) for s in seconds[:300]], 600)
        held += left.low <= sum(seconds[300:]) <= left.high
    assert 0.88 <= held / 400 <= 0.99


@pytest.mark.parametrize(
    ("step", "last_step", "count"),
    [(0, 100, 10), (9, 100, 10), (10, 100, 9), (95, 97, 1), (5, 5, 0)],
)
def test_evaluations_come_every_so_often_and_after_the_last_step(step, last_step, count):
    assert evaluations_left(step, last_step, every_steps=10) == count
