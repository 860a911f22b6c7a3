"""Computes the bytes that a step must send, from the algorithm alone. Pure, without torch.

Both gloo and NCCL pass large tensors around a ring: each rank sends 2 (n - 1) / n times the bytes
of the gradients for an all-reduce, half of that for a gather or a scatter.
"""

import math

from dragoman.config import SyncSettings
from dragoman.distributed.wire_bytes import WireKind, is_gathered, sent_bytes

BUCKET_BYTES = 25 * 2**20
"""DDP sends gradients in buckets of this size."""
ETHERNET_HEADER = 14
IP_AND_TCP_HEADERS = 52
"""Header bytes of IPv4 and TCP with timestamps."""


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
    tensors: int = 0,
) -> float:
    """Returns the bytes a host sends in this mode until all weights or gradients are common.

    Gradients are so in every step, weights of workers that take steps of their own once in a
    window. `tensors`: how many there are; they matter only to 4-bit codes, and little.
    """
    if sync.mode == "bf16":
        return _scattered_bytes("bf16", parameters, tensors, ranks, ranks_on_host)
    # On one host, all of its workers are one group, whose weights are always common.
    if not sync.is_local or (sync.group == "host" and hosts == 1):
        return bytes_per_step(parameters, ranks, ranks_on_host, sharded=False)
    if sync.group == "host":
        ranks, ranks_on_host = hosts, 1
    wire = sync.wire or "fp32"
    if not is_gathered(wire, parameters, tensors, ranks):
        return _scattered_bytes(wire, parameters, tensors, ranks, ranks_on_host)
    gathered = sent_bytes(wire, parameters, tensors, ranks)
    return gathered * ranks if ranks_on_host == ranks else gathered


def mean_bytes_of_mode(
    sync: SyncSettings, parameters: int, ranks: int, ranks_on_host: int, hosts: int
) -> float:
    """Returns the bytes a host sends in a step of this mode, as the mean over a window."""
    is_exact = sync.group == "host" and hosts == 1
    whole = bytes_of_mode(sync, parameters, ranks, ranks_on_host, hosts)
    return whole if is_exact else whole / sync.window_steps


def _scattered_bytes(
    wire: WireKind, parameters: int, tensors: int, ranks: int, ranks_on_host: int
) -> float:
    """Slices go from every rank to every other, and their sums or means around a ring."""
    if ranks == 1:
        return 0.0
    sent = sent_bytes(wire, parameters, tensors, ranks)
    if ranks_on_host == ranks:
        return sent * ranks
    # Of the first half, what goes to ranks of other hosts; of the ring, what its last rank sends.
    to_others = ranks_on_host * (ranks - ranks_on_host) / (ranks - 1)
    return sent / 2 * to_others + sent / 2


def messages_of(gradient_bytes: float) -> float:
    """Returns the number of DDP's buckets; the first one is small, so that sending begins early."""
    return 1.0 + math.ceil(gradient_bytes / BUCKET_BYTES)


def on_the_wire(payload: float, mtu: int) -> float:
    """Returns the bytes with the headers of TCP: each packet of the interface's size has some.

    Acknowledgments come on top, 2 % at most, and less on fast links.
    """
    return payload * (mtu + ETHERNET_HEADER) / (mtu - IP_AND_TCP_HEADERS)
