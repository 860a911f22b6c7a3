"""Computes the bytes that a step must send, from the algorithm alone. Pure, without torch.

Both gloo and NCCL pass large tensors around a ring: each rank sends 2 (n - 1) / n times the bytes
of the gradients for an all-reduce, half of that for a gather or a scatter.
"""

import math

from dragoman.config import SyncSettings
from dragoman.distributed.wire_bytes import is_gathered, sent_bytes

BUCKET_BYTES = 25 * 2**20
"""DDP sends gradients in buckets of this size."""
TENSORS = 200
"""Of a Transformer of twelve layers. The tables of so many take a thousandth of the bytes of a
transformer-base in 4 bits, so that the exact number does not matter."""
ETHERNET_HEADER = 14
IP_AND_TCP_HEADERS = 52
"""Header bytes of IPv4 and TCP with timestamps."""


def messages_of(gradient_bytes: float) -> float:
    """Returns the number of DDP's buckets; the first one is small, so that sending begins early."""
    return 1.0 + math.ceil(gradient_bytes / BUCKET_BYTES)


def bytes_per_step(
    parameters: int, ranks: int, ranks_on_host: int, sharded: bool, passes: int = 1
) -> float:
    """Returns the bytes a host sends in each step, in fp32 and without headers.

    Neighbors in the ring are neighbors by number, so that one rank of a host sends to another
    host. Where all ranks are on one host, everything passes its loopback interface. `passes` are
    the micro-batches of a rank: with sharded states each gathers all weights twice.
    """
    if ranks == 1:
        return 0.0
    share = (ranks - 1) / ranks
    volume = 4.0 * parameters * share * (2 * passes + 1 if sharded else 2)
    return volume * ranks if ranks_on_host == ranks else volume


def bytes_of_mode(
    sync: SyncSettings,
    parameters: int,
    ranks: int,
    ranks_on_host: int,
    hosts: int,
    ends_window: bool = True,
) -> float:
    """Returns the bytes a host sends in a step of this mode, where ranks hold the whole model.

    `ends_window`: whether the step ends with a synchronization, where not every step does; it has
    the bytes of all fragments then, whenever they travel.
    """
    exact = bytes_per_step(parameters, ranks, ranks_on_host, sharded=False)
    if sync.mode == "bf16":
        return _bf16_bytes(parameters, ranks, ranks_on_host)
    if not sync.is_local:
        return exact
    if sync.group == "host":
        if hosts == 1:  # one group of all workers, whose weights are always common
            return exact
        ranks, ranks_on_host = hosts, 1
    return _window_bytes(sync, parameters, ranks, ranks_on_host) if ends_window else 0.0


def mean_bytes_of_mode(
    sync: SyncSettings, parameters: int, ranks: int, ranks_on_host: int, hosts: int
) -> float:
    """Returns the bytes a host sends in a step of this mode, as the mean over a window."""
    quiet, last = (
        bytes_of_mode(sync, parameters, ranks, ranks_on_host, hosts, ends_window)
        for ends_window in (False, True)
    )
    return quiet + (last - quiet) / sync.window_steps


def _window_bytes(sync: SyncSettings, parameters: int, ranks: int, ranks_on_host: int) -> float:
    """Returns the bytes a host sends to average the differences of all weights once."""
    if sync.wire == "fp32" or ranks == 1:
        return bytes_per_step(parameters, ranks, ranks_on_host, sharded=False)
    sent = sent_bytes(sync.wire, parameters, TENSORS, ranks)
    if ranks_on_host == ranks:
        return sent * ranks
    if is_gathered(sync.wire, parameters, TENSORS, ranks):
        return sent  # around a ring, in which one rank of a host sends to another host
    # Half of it goes around a ring. The other half goes from each rank to every other one, of which
    # those on other hosts count.
    to_others = ranks_on_host * (ranks - ranks_on_host) / (ranks - 1)
    return sent / 2 * (1 + to_others)


def _bf16_bytes(parameters: int, ranks: int, ranks_on_host: int) -> float:
    """Slices go from every rank to every other, and their sums around a ring."""
    if ranks == 1:
        return 0.0
    volume = 2.0 * parameters
    around = volume * (ranks - 1) / ranks
    if ranks_on_host == ranks:
        return 2 * around * ranks
    return volume * ranks_on_host * (ranks - ranks_on_host) / ranks + around


def on_the_wire(payload: float, mtu: int) -> float:
    """Returns the bytes with the headers of TCP: each packet of the interface's size has some.

    Acknowledgments come on top, 2 % at most, and less on fast links.
    """
    return payload * (mtu + ETHERNET_HEADER) / (mtu - IP_AND_TCP_HEADERS)
