"""Measures the way between ranks, with the collectives that training itself uses."""

import statistics
import time

import torch
import torch.distributed as dist

from dragoman.distributed.group import Group
from dragoman.distributed.ring_bytes import bytes_per_step
from dragoman.distributed.sync_forecast import Link

LATENCY_TRIES = 7
LEAST_S = 1.0
"""A shorter transfer may fit into buffers on the way, which are faster than the link."""
FIRST_ELEMENTS = 1 << 16
MOST_GROWTH = 16.0


def measure_link(group: Group, ranks_on_host: int, most_elements: int) -> Link:
    """Returns the rate at which a host sends in an all-reduce, and what a small one takes.

    Sizes grow until a transfer takes a second, or is as large as the gradients. Collective: every
    rank must call.
    """
    group.pulse.enter("synchronization")  # on a slow link it may take many times a step
    small = torch.zeros(1, device=group.device)
    _seconds(small, group)  # connections are made here
    latency_s = statistics.median(_seconds(small, group) for _ in range(LATENCY_TRIES))
    elements = min(FIRST_ELEMENTS, most_elements)
    while True:
        passed_s = _seconds(torch.zeros(elements, device=group.device), group)
        if passed_s >= LEAST_S or elements == most_elements:
            break
        growth = min(MOST_GROWTH, 1.2 * LEAST_S / passed_s)
        elements = min(most_elements, max(elements + 1, int(elements * growth)))
    sent = bytes_per_step(elements, group.ranks, ranks_on_host, sharded=False)
    return Link(sent / max(passed_s - latency_s, 1e-9), latency_s)


def _seconds(tensor: torch.Tensor, group: Group) -> float:
    """Returns what an all-reduce took, as rank 0 saw it; all have begun it together."""
    group.gather(None)
    begun = time.perf_counter()
    dist.all_reduce(tensor)
    if group.device.type == "cuda":
        torch.cuda.synchronize(group.device)
    return float(group.broadcast(time.perf_counter() - begun))
