"""Who measures with whom and when: names of hosts come in, rounds of pairs go out. Pure.

In a round every host is in one pair at most, so that no measurement takes a port from another.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Direction(NamedTuple):
    sender: str
    receiver: str


Round = tuple[Direction, ...]


def round_robin(hosts: Sequence[str]) -> list[Round]:
    """Returns rounds in which every host sends to every other once: n - 1 for an even number of
    hosts, n for an odd one, and each twice, since the directions of a pair are measured apart.

    The circle method: one host stays, the others move on by one place each round, and those that
    face each other are a pair.
    """
    places: list[str | None] = list(hosts)
    if len(places) % 2:
        places.append(None)  # whoever faces it has a rest
    rounds = []
    for _ in range(len(places) - 1):
        half = len(places) // 2
        facing = zip(places[:half], reversed(places[half:]), strict=True)
        rounds.append([(one, other) for one, other in facing if one and other])
        places = [places[0], places[-1], *places[1:-1]]
    return _both_ways(rounds)


def around_the_ring(hosts: Sequence[str]) -> list[Round]:
    """Returns rounds in which every host exchanges with its neighbors in the order of the list.

    These are the links that an all-reduce uses. Every host meets two others, which is enough to
    tell a slow port from a slow path, in four rounds however many hosts there are, or six.
    """
    if len(hosts) < 2:
        return []
    pairs = list(zip(hosts, [*hosts[1:], hosts[0]], strict=True))
    if len(hosts) == 2:
        return _both_ways([pairs[:1]])
    rounds = [pairs[0::2], pairs[1::2]]
    if len(hosts) % 2:  # the last pair has the first host in it, like the first pair
        rounds = [pairs[0:-1:2], pairs[1::2], pairs[-1:]]
    return _both_ways(rounds)


def _both_ways(rounds: Sequence[Sequence[tuple[str, str]]]) -> list[Round]:
    both = []
    for pairs in rounds:
        both.append(tuple(Direction(one, other) for one, other in pairs))
        both.append(tuple(Direction(other, one) for one, other in pairs))
    return [pairs for pairs in both if pairs]
