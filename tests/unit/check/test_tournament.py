from collections import Counter

import pytest

from dragoman.check.tournament import around_the_ring, round_robin


@pytest.mark.parametrize("count", range(2, 18))
def test_every_host_sends_once_to_every_other(count):
    hosts = [f"h{number}" for number in range(count)]
    ways = Counter(way for pairs in round_robin(hosts) for way in pairs)
    assert ways == Counter((a, b) for a in hosts for b in hosts if a != b)


@pytest.mark.parametrize("schedule", [round_robin, around_the_ring])
@pytest.mark.parametrize("count", range(2, 18))
def test_no_host_is_in_two_pairs_at_once(schedule, count):
    for pairs in schedule([f"h{number}" for number in range(count)]):
        playing = [name for way in pairs for name in way]
        assert len(playing) == len(set(playing))


@pytest.mark.parametrize(("count", "rounds"), [(2, 2), (3, 6), (4, 6), (5, 10), (16, 30)])
def test_there_are_no_more_rounds_than_needed(count, rounds):
    assert len(round_robin([f"h{number}" for number in range(count)])) == rounds


@pytest.mark.parametrize("count", range(3, 18))
def test_around_the_ring_every_host_meets_its_two_neighbors_both_ways(count):
    hosts = [f"h{number}" for number in range(count)]
    rounds = around_the_ring(hosts)
    ways = Counter(way for pairs in rounds for way in pairs)
    next_ones = dict(zip(hosts, [*hosts[1:], hosts[0]], strict=True))
    assert ways == Counter(
        way for one, other in next_ones.items() for way in ((one, other), (other, one))
    )
    assert len(rounds) <= 6


def test_one_host_has_nobody_to_play_with():
    assert round_robin(["alone"]) == around_the_ring(["alone"]) == []
