"""Computes the bytes that a step must send, from the algorithm alone. Pure, without torch.

Both gloo and NCCL pass large tensors around a ring: each rank sends 2 (n - 1) / n times the bytes
of the gradients for an all-reduce, half of that for a gather or a scatter.
"""

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


def on_the_wire(payload: float, mtu: int) -> float:
    """Returns the bytes with the headers of TCP: each packet of the interface's size has some.

    Acknowledgments come on top, 2 % at most, and less on fast links.
    """
    return payload * (mtu + ETHERNET_HEADER) / (mtu - IP_AND_TCP_HEADERS)
