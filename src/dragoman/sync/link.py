"""Measures the way between ranks, with the collectives that training itself uses."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist

from dragoman.distributed.group import Group
from dragoman.distributed.ring_bytes import bytes_per_step
from dragoman.forecast.sync_modes import Link

LATENCY_TRIES = 7
LEAST_S = 1.0
"""A shorter transfer may fit into buffers on the way, which are faster than the link."""
FIRST_ELEMENTS = 1 << 16
MOST_GROWTH = 16.0
MOST_REPETITIONS = 10


class AllReduces(NamedTuple):
    latency_s: float
    """Of one that carries a single number, the median of several."""
    elements: int
    """Of the largest one."""
    seconds: list[float]
    """Each repetition of the largest one."""


def measure_link(group: Group, ranks_on_host: int, most_elements: int) -> Link:
    """Returns the rate at which a host sends in an all-reduce, and what a small one takes.

    Collective: every rank must call.
    """
    found = time_all_reduces(group, most_elements)
    sent = bytes_per_step(found.elements, group.ranks, ranks_on_host, sharded=False)
    return Link(sent / max(found.seconds[0] - found.latency_s, 1e-9), found.latency_s)


def time_all_reduces(
    group: Group, most_elements: int, least_s: float = LEAST_S, repetitions: int = 1
) -> AllReduces:
    """Times all-reduces of fp32: sizes grow until one takes `least_s`, or is `most_elements`.

    The largest is repeated; one that takes next to nothing more often than asked for. Collective:
    every rank must call.
    """
    group.pulse.enter("synchronization")  # on a slow link it may take many times a step
    small = torch.zeros(1, device=group.device)
    _seconds(small, group)  # connections are made here
    latency_s = statistics.median(_seconds(small, group) for _ in range(LATENCY_TRIES))
    elements = min(FIRST_ELEMENTS, most_elements)
    while True:
        values = torch.zeros(elements, device=group.device)
        passed_s = _seconds(values, group)
        if passed_s >= least_s or elements == most_elements:
            break
        growth = min(MOST_GROWTH, 1.2 * least_s / passed_s)
        elements = min(most_elements, max(elements + 1, int(elements * growth)))
    found = [passed_s]
    while len(found) < repetitions or (
        repetitions > 1 and len(found) < MOST_REPETITIONS and sum(found) < least_s
    ):
        found.append(_seconds(values, group))
    return AllReduces(latency_s, elements, found)


def time_all_to_all(group: Group, elements: int, repetitions: int) -> list[float]:
    """Times what every rank sends a slice of its fp32 values to every other one in.

    Several hosts that send to one at the same time may slow each other, which no ring shows.
    Collective: every rank must call.
    """
    slices = torch.zeros(group.ranks, -(-elements // group.ranks), device=group.device)
    received = torch.empty_like(slices)
    return [
        _seconds(slices, group, lambda values: dist.all_to_all_single(received, values))
        for _ in range(repetitions)
    ]


def _seconds(
    tensor: torch.Tensor,
    group: Group,
    exchange: Callable[[torch.Tensor], object] = dist.all_reduce,
) -> float:
    """Returns what an exchange took until the last rank had it; all have begun it together."""
    group.gather(None)
    begun = time.perf_counter()
    exchange(tensor)
    if group.device.type == "cuda":
        torch.cuda.synchronize(group.device)
    return float(max(group.gather(time.perf_counter() - begun)))
