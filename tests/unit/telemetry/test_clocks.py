import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dragoman.telemetry.clocks import (
    Comparisons,
    RoundTrip,
    Timeline,
    compare_clocks,
    estimate,
)


def trip(ahead_s, there_s, back_s, at=100.0, thinking_s=0.001):
    """A round trip of a clock that is ahead by so much."""
    heard_at = at + there_s
    answered_at = heard_at + thinking_s
    return RoundTrip(at + ahead_s, heard_at, answered_at, answered_at + back_s + ahead_s)


def test_equal_ways_there_and_back_give_the_offset_exactly():
    found = estimate([trip(5.0, 0.01, 0.01)])
    assert found.offset_s == pytest.approx(5.0)
    assert found.error_s == pytest.approx(0.01)


def test_the_truth_is_never_further_away_than_the_error():
    chance = random.Random(1)
    for _ in range(200):
        ahead_s = chance.uniform(-1000, 1000)
        trips = [
            trip(ahead_s, chance.expovariate(100), chance.expovariate(100), at)
            for at in range(chance.randint(1, 9))
        ]
        found = estimate(trips)
        assert abs(found.offset_s - ahead_s) <= found.error_s + 1e-9
        assert found.error_s <= min(estimate([one]).error_s for one in trips) + 1e-9


def test_quick_ways_there_and_back_may_come_from_different_trips():
    trips = [trip(5.0, 0.001, 0.5), trip(5.0, 0.5, 0.001)]
    assert estimate(trips).error_s == pytest.approx(0.001)
    assert estimate(trips).offset_s == pytest.approx(5.0)


class Hosts:
    """Ranks as threads, with clocks of their own, which meet at a barrier."""

    def __init__(self, ranks, ahead_s, seed):
        self.ahead_s = ahead_s
        self._chance = random.Random(seed)
        self._now = 0.0
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(ranks)
        self._messages = {}

    def monotonic(self, rank):
        with self._lock:  # time passes whenever somebody looks
            self._now += self._chance.expovariate(10_000)
            return self._now + self.ahead_s[rank]

    def gather(self, rank, message):
        self._messages[rank] = message
        self._barrier.wait(30)
        return [self._messages[n] for n in sorted(self._messages)]

    def compare(self, rank):
        return compare_clocks(
            meet=lambda: self._barrier.wait(30),
            gather=lambda message: self.gather(rank, message),
            rank=rank,
            host=f"host-{rank}",
            monotonic=lambda: self.monotonic(rank),
            wall=lambda: self.monotonic(rank) + 1e9 + 7 * rank,
        )


@pytest.mark.parametrize("seed", range(5))
def test_ranks_that_meet_learn_how_their_clocks_stand(seed):
    hosts = Hosts(3, ahead_s=[50.0, -20.0, 300.0], seed=seed)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(hosts.compare, range(3)))
    assert (found[0].offset_s, found[0].monotonic_offset_s, found[0].error_s) == (0.0, 0.0, 0.0)
    for rank, ahead_s in ((1, -70.0), (2, 250.0)):
        assert found[rank].host == f"host-{rank}"
        # A hair more than the error: these clocks move while they are looked at.
        near = found[rank].error_s + 0.002
        assert abs(found[rank].monotonic_offset_s - ahead_s) <= near
        assert abs(found[rank].offset_s - (ahead_s + 7 * rank)) <= near


def test_between_two_comparisons_an_offset_drifts_along_a_line():
    compared = Comparisons(np.array([0.0, 100.0]), np.array([5.0, 6.0]), np.array([0.1, 0.1]))
    found = compared.offsets_at(np.array([-10.0, 0.0, 25.0, 100.0, 500.0]))
    assert found == pytest.approx([5.0, 5.0, 5.25, 6.0, 6.0])


def test_a_comparison_far_worse_than_the_others_is_left_out():
    compared = Comparisons(
        np.array([0.0, 50.0, 100.0]), np.array([5.0, 9.0, 5.0]), np.array([0.001, 1.0, 0.001])
    )
    assert compared.offsets_at(np.array([50.0])) == pytest.approx([5.0])


def test_one_timeline_holds_through_offsets_drift_and_a_clock_that_is_set():
    # Rank 0's monotonic clock is the truth; its wall clock shows 1000 more. Rank 1's monotonic
    # clock is 40 ahead and gains 1 in 1000; its wall clock is an hour wrong.
    truth = np.array([10.0, 500.0, 1000.0])
    theirs = 40.0 + truth * 1.001
    timeline = Timeline(
        {0: 1000.0, 1: 4600.0}, {1: Comparisons(theirs, theirs - truth, np.full(3, 0.001))}
    )
    assert timeline.place(0, truth) == pytest.approx(1000 + truth)
    assert timeline.place(1, theirs) == pytest.approx(1000 + truth)
    between = 250.0
    assert timeline.place(1, np.array([40 + between * 1.001])) == pytest.approx([1000 + between])


def test_a_host_that_was_never_compared_is_taken_at_its_word():
    timeline = Timeline({0: 1000.0, 2: 5000.0}, {})
    assert timeline.place(2, np.array([1.0])) == pytest.approx([5001.0])
