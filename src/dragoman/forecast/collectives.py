"""Seconds of collectives from rates and latencies of the way between hosts. Pure.

Rates are of payload, headers excluded. Ranks are numbered host by host, so that a ring crosses
from each host to the next one once. Anything that all hosts do at once is as slow as the slowest
of them.
"""

from typing import NamedTuple


class Network(NamedTuple):
    """Hosts and the way between them; rates are in bytes a second."""

    hosts: int
    ranks_on_host: int
    hop_rate: float
    """Of the slowest hop of the ring: from a host to the next, the last one to the first."""
    send_rate: float
    """Of the port that sends the slowest, whoever receives."""
    receive_rate: float
    """Of the port that receives the slowest."""
    latency_s: float
    """Of one message from a host to another and what handing it over takes."""
    local_rate: float
    """Between two workers of one host."""
    local_latency_s: float
    queue_s: float = 0.0
    """By which a message from a host to another takes longer while a large one fills the queues
    on its way."""

    @property
    def ranks(self) -> int:
        return self.hosts * self.ranks_on_host

    def only_hosts(self) -> "Network":
        """Returns the network as it is to one worker of each host."""
        return self._replace(ranks_on_host=1)

    def one_host(self) -> "Network":
        return self._replace(hosts=1)


def all_reduce_s(payload_bytes: float, network: Network) -> float:
    """Returns the seconds of a ring: a reduce-scatter, then an all-gather of the sums."""
    return reduce_scatter_s(payload_bytes, network) + all_gather_s(payload_bytes, network)


def reduce_scatter_s(payload_bytes: float, network: Network) -> float:
    """Returns the seconds of ranks - 1 steps, in each of which a rank passes one part of its
    payload to its neighbor."""
    return _around_the_ring(payload_bytes / network.ranks, network)


def all_gather_s(payload_bytes: float, network: Network) -> float:
    """Returns the seconds until all ranks have the payload of which each has one part."""
    return _around_the_ring(payload_bytes / network.ranks, network)


def all_to_all_s(payload_bytes: float, network: Network) -> float:
    """Returns the seconds until each rank has sent its part of the payload to every other.

    All set out at once, so each port is bound by its own bytes and nothing else.
    """
    if network.ranks == 1:
        return 0.0
    part = payload_bytes / network.ranks
    inside = network.ranks_on_host * (network.ranks_on_host - 1) * part / network.local_rate
    if network.hosts == 1:
        return inside + network.local_latency_s
    crossing = network.ranks_on_host * (network.ranks - network.ranks_on_host) * part
    ports_s = crossing / min(network.send_rate, network.receive_rate)
    return max(ports_s, inside) + network.latency_s


def broadcast_s(payload_bytes: float, network: Network) -> float:
    """Returns the seconds until all ranks of a host have what one of them has, one by one."""
    others = network.ranks_on_host - 1
    return others * (payload_bytes / network.local_rate + network.local_latency_s)


def _around_the_ring(part_bytes: float, network: Network) -> float:
    steps = network.ranks - 1
    if network.hosts == 1:
        return steps * (part_bytes / network.local_rate + network.local_latency_s)
    rate = network.hop_rate
    if network.ranks_on_host > 1:
        rate = min(rate, network.local_rate)
    return steps * (part_bytes / rate + network.latency_s)
