import numpy as np
import pytest

from dragoman.diagnosis.run.steps import StepParts, ready_as_timed, split_steps
from dragoman.diagnosis.speed.bottleneck import UNKNOWN_LINK
from dragoman.diagnosis.speed.phases import (
    Phase,
    bottleneck_of,
    bounds_of,
    change_point,
    over_in_words,
    phases_of,
)

USUAL = {
    "data": 0.01,
    "forward": 0.3,
    "backward": 0.6,
    "communication": 0.02,
    "agreement": 0.001,
    "checkpoint": 0.0,
    "optimizer": 0.02,
    "rest": 0.005,
}
NAMES = {(1, 0): "a", (1, 1): "b"}


def steps_of(communication) -> StepParts:
    """Two ranks that wait alike."""
    count = len(communication)
    parts = {name: np.full((2, count), value) for name, value in USUAL.items()}
    parts["communication"] = np.tile(np.asarray(communication, dtype=float), (2, 1))
    return steps_of_parts(parts)


def steps_of_parts(parts) -> StepParts:
    numbers = np.arange(parts["data"].shape[1])
    columns, waits_s = split_steps(numbers, parts, ready_as_timed(numbers, parts))
    count = waits_s.shape[1]
    return StepParts(
        attempt=np.ones(count, dtype=np.int64),
        step=np.arange(1, count + 1),
        at=np.zeros(count),
        columns=columns,
        waits_s=dict(enumerate(waits_s)),
        is_first=np.zeros(count, dtype=bool),
        missing_ranks={},
    )


def test_data_that_is_late_now_here_and_now_there_begins_where_its_lateness_does():
    parts = {name: np.full((2, 300), value) for name, value in USUAL.items()}
    for rank in range(2):
        is_late = (np.arange(300) >= 120) & (np.arange(300) % 2 == rank)
        parts["data"][rank, is_late] += 0.8
        parts["communication"][1 - rank, is_late] += 0.8
    steps = steps_of_parts(parts)
    found = bottleneck_of(steps, np.arange(300), UNKNOWN_LINK, NAMES)

    assert (found.verdict, found.since_step) == ("input-bound", 121)


def judged(communication):
    steps = steps_of(communication)
    return bottleneck_of(steps, np.arange(len(steps)), UNKNOWN_LINK, NAMES)


def test_a_change_is_found_to_the_step():
    values = np.concatenate([np.full(70, 0.1), np.full(30, 1.0)])
    values += np.random.default_rng(1).normal(0, 0.05, 100)

    assert change_point(values, 50, 90) == 70


def test_a_run_that_does_not_change_has_one_phase():
    steps = steps_of([2.0] * 300)
    (phase,) = phases_of(steps, np.arange(300), UNKNOWN_LINK, NAMES)

    assert phase == ("network-bound", 0, 300)
    found = judged([2.0] * 300)
    assert (found.since_step, found.until_step, found.phases) == (None, None, 1)


def test_a_phase_shorter_than_a_twentieth_of_the_run_is_no_phase():
    found = judged([0.02] * 150 + [3.0] * 10 + [0.02] * 140)

    assert (found.verdict, found.since_step) == ("compute-bound", None)


def test_what_holds_the_run_back_since_lately_is_its_verdict_though_the_mean_is_not_yet():
    found = judged([0.02] * 280 + [0.9] * 30)

    assert (found.verdict, found.since_step, found.until_step) == ("network-bound", 281, None)
    assert found.split.network_s == pytest.approx(0.9)
    assert found.run_split.network_s < 0.2


def test_phases_with_the_same_verdict_are_counted():
    found = judged(([0.02] * 50 + [2.0] * 50) * 3)

    assert (found.since_step, found.until_step, found.phases) == (51, None, 3)


def late_ranks(late, count=120, late_s=0.5, ranks=2):
    """`late`: of the number of a step, which of the ranks is late; None: none of them."""
    parts = {name: np.full((ranks, count), value) for name, value in USUAL.items()}
    for number in range(count):
        if late(number) is not None:
            parts["communication"][:, number] += late_s
            parts["forward"][late(number), number] += late_s
            parts["communication"][late(number), number] -= late_s
    names = {(1, rank): name for rank, name in enumerate("abcd")}
    return bottleneck_of(steps_of_parts(parts), np.arange(count), UNKNOWN_LINK, names)


def turns_of(found):
    return [(turn.late.who, turn.since_step, turn.until_step) for turn in found.turns]


@pytest.mark.parametrize("moved", [50, 150, 250])
def test_a_slow_host_that_is_followed_by_another_is_told_with_its_end(moved):
    found = late_ranks(lambda number: 0 if number < moved else 3, count=300, ranks=4)

    assert turns_of(found) == [("a", None, moved), ("d", moved + 1, None)]
    assert (found.late.who, found.until_step, found.is_over) == ("d", None, False)
    assert found.split.straggling_s == pytest.approx(0.5)


def test_a_slow_host_after_a_pause_is_told_with_both_of_its_bounds():
    def late(number):
        return 0 if number < 100 else 3 if number >= 180 else None

    assert turns_of(late_ranks(late, 300, ranks=4)) == [("a", None, 100), ("d", 181, None)]


@pytest.mark.parametrize("each", [1, 7, 30, 50])
def test_hosts_that_are_slow_now_and_then_in_turn_are_not_blamed_one_by_one(each):
    found = late_ranks(lambda number: number // each % 4, count=400, ranks=4)

    assert turns_of(found) == []
    assert not found.late.is_always_the_same


def test_exact_bounds_are_taken_where_they_are_in_order():
    phases = [Phase("a", 0, 40), Phase("b", 40, 60), Phase("c", 60, 100)]

    assert bounds_of(phases, [38, 63]) == [0, 38, 63, 100]
    assert bounds_of(phases, [55, 50]) == [0, 40, 60, 100]


def test_trouble_is_over_where_what_follows_is_better():
    ended = late_ranks(lambda number: 1 if number < 200 else None, count=300)

    assert (ended.late.who, ended.until_step, ended.is_over) == ("b", 200, True)
    assert over_in_words(ended) == "it has been over since step 201"


def test_trouble_that_is_followed_by_other_trouble_is_not_over():
    chance = np.random.default_rng(3).integers(0, 2, 120)
    found = late_ranks(lambda number: 1 if number < 50 else int(chance[number]))

    assert not found.is_over
    assert over_in_words(found) == ""


def test_what_holds_the_run_back_now_is_its_verdict_where_it_is_no_better_than_before():
    """The network takes 0.9 s for 200 steps, then the second host is late by as much."""
    parts = {name: np.full((2, 300), value) for name, value in USUAL.items()}
    parts["communication"][:, :200] = 0.9
    parts["forward"][1, 200:] += 0.9
    parts["communication"][0, 200:] += 0.9
    found = bottleneck_of(steps_of_parts(parts), np.arange(300), UNKNOWN_LINK, NAMES)

    assert (found.verdict, found.late.who, found.since_step) == ("straggler", "b", 201)


def test_a_host_that_is_late_for_a_part_of_the_run_is_named_with_its_end():
    chance = np.random.default_rng(3).integers(0, 2, 120)
    found = late_ranks(lambda number: 1 if number < 50 else int(chance[number]))

    assert (found.verdict, found.late.who) == ("straggler", "b")
    assert found.late.is_always_the_same
    assert found.since_step is None
    assert abs(found.until_step - 50) <= 3


@pytest.mark.parametrize("seed", range(8))
def test_hosts_that_are_late_in_turn_all_the_time_are_not_named_for_a_part(seed):
    chance = np.random.default_rng(seed).integers(0, 2, 120)
    found = late_ranks(lambda number: int(chance[number]))

    assert found.verdict == "straggler"
    assert (found.since_step, found.until_step) == (None, None)
