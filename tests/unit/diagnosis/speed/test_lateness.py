import numpy as np
import pytest

from dragoman.diagnosis.run.steps import StepParts
from dragoman.diagnosis.speed.bottleneck import NOBODY
from dragoman.diagnosis.speed.lateness import (
    AttemptWaits,
    culprits_of,
    late_of,
    waited_for,
    waits_without,
)

HOSTS = ["node-a", "node-b", "node-c", "node-d"]


def piece(*waits_s: float, called=HOSTS, steps: int = 50) -> AttemptWaits:
    """Each rank waits as long in every step."""
    ranks = len(waits_s)
    return AttemptWaits(
        called[:ranks], range(ranks), np.repeat([waits_s], steps, axis=0).T.astype(float)
    )


def test_all_waiting_is_for_the_one_that_waits_for_nobody():
    (first, *others) = waited_for([piece(0.5, 0.4, 0.0, 0.5)])

    assert (first.who, first.share, first.step_share) == ("node-c", 1.0, 1.0)
    assert first.waited_s == pytest.approx(50 * 0.5)
    assert [one.share for one in others] == [0.0, 0.0, 0.0]
    assert late_of([piece(0.5, 0.4, 0.0, 0.5)]).who == "node-c"


def test_where_nobody_waits_nobody_is_late():
    assert waited_for([piece(0.0, 0.0)]) == []
    assert late_of([piece(0.0, 0.0)]) == NOBODY
    assert late_of([]) == NOBODY


def test_what_was_not_recorded_is_for_nobody():
    assert late_of([piece(np.nan, np.nan)]) == NOBODY


def test_two_that_are_late_together_are_named_together():
    late = late_of([piece(0.5, 0.0, 0.5, 0.001)])

    assert (late.who, late.are_several, late.early) == ("node-b and node-d", True, "")
    assert late.share == 1.0


def test_where_most_are_late_together_the_early_one_is_told():
    waits_s = np.array([[0.6] * 60, *(0.01 * np.array([0, 1, 2] * 20) for _ in range(3))])
    for place in (1, 2, 3):
        waits_s[place] = np.roll(waits_s[place], place)
    late = late_of([AttemptWaits(HOSTS, range(4), waits_s)])

    assert late.early == "node-a"
    assert late.share < 0.5


def test_of_several_ranks_on_a_host_only_the_late_one_is_named():
    called = ["node-a", "node-a", "node-b", "node-b"]
    late = late_of([piece(0.5, 0.5, 0.5, 0.0, called=called)])

    assert (late.who, late.are_ranks) == ("rank 3 on node-b", True)


def test_a_host_all_of_whose_ranks_are_late_goes_by_its_name():
    called = ["node-a", "node-a", "node-b", "node-b"]
    late = late_of([piece(0.5, 0.5, 0.001, 0.0, called=called)])

    assert (late.who, late.are_ranks) == ("node-b", False)


def test_a_host_that_took_part_in_next_to_none_of_the_waiting_is_not_blamed():
    """Of another attempt: by chance it was the last of two in a few steps that hardly waited."""
    slow = piece(0.8, 0.0, called=["node-c", "node-x"], steps=400)
    calm = piece(0.01, 0.0, called=["node-d", "node-e"], steps=6)

    assert late_of([slow, calm]).who == "node-x"


def test_stragglers_of_two_attempts_are_both_named():
    first = piece(0.8, 0.0, called=["node-a", "node-b"])
    second = piece(0.0, 0.7, called=["node-c", "node-d"])

    assert late_of([first, second]).who == "node-b and node-c"


NAMES = {(1, rank): host for rank, host in enumerate(HOSTS)}


def steps(waits_s) -> StepParts:
    """`waits_s`: ranks x steps, of one attempt."""
    count = len(waits_s[0])
    ones = np.ones(count, dtype=np.int64)
    waits = {rank: np.array(own, dtype=float) for rank, own in enumerate(waits_s)}
    return StepParts(ones, np.arange(count), ones, {}, waits, ones > 1, {})


def test_one_for_whom_nearly_all_waiting_is_is_the_culprit():
    waits_s = [[0.5] * 20, [0.0] * 19 + [0.5], [0.5] * 19 + [0.0]]

    assert culprits_of(steps(waits_s), NAMES, np.arange(20)) == {"node-b"}
    in_turn = [[0.5, 0.0] * 10, [0.0, 0.5] * 10, [0.5, 0.5] * 10]
    assert culprits_of(steps(in_turn), NAMES, np.arange(20)) == frozenset()


def test_without_a_late_host_the_others_still_wait_for_the_next_one():
    """The second is last, the third waits 0.2 s for it and the first 0.5 s; then the third is."""
    own = steps([[0.5, 0.5], [0.0, 0.3], [0.2, 0.0]])
    rows = np.arange(2)

    assert waits_without(own, NAMES, rows, ["node-b"]).tolist() == [0.2, 0.0]
    assert waits_without(own, NAMES, rows, ["rank 1 on node-b"]).tolist() == [0.2, 0.0]
    assert waits_without(own, NAMES, rows, ["node-b", "node-c"]).tolist() == [0.5, 0.5]
    assert waits_without(own, NAMES, rows, ["node-a"]).tolist() == [0.0, 0.0]
