import pytest

from dragoman.diagnosis.learning.repeated import repeated
from dragoman.diagnosis.run.faults import Fault


def faults(*steps, kind="failed", what="ValueError: line {} is odd"):
    return [Fault(kind, what.format(n), float(n), n, step) for n, step in enumerate(steps, 1)]


@pytest.mark.parametrize(
    ("steps", "number"),
    [
        ((412, 412, 412), 3),
        ((10, 412, 413, 411, 900), 3),
        ((20_000, 20_150, 20_090, 20_010), 4),
        ((412, 412), 0),
        ((412, 500, 600), 0),
        ((), 0),
    ],
)
def test_three_at_about_the_same_step_are_no_chance(steps, number):
    assert len(repeated(faults(*steps))) == number


def test_failures_that_say_something_else_are_others():
    assert repeated([*faults(412, 412), *faults(412, what="RuntimeError")]) == []


@pytest.mark.parametrize(("kind", "number"), [("broken off", 3), ("preempted", 0)])
def test_a_host_that_is_taken_away_is_no_failure(kind, number):
    assert len(repeated(faults(412, 412, 412, kind=kind))) == number
