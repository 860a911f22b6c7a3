"""What a link carries: `100mbit` comes in, the numbers of a token bucket go out. Pure."""

import re
from typing import Literal, NamedTuple, TypeAlias, get_args

from dragoman.errors import UserError

Direction: TypeAlias = Literal["both", "send", "receive"]

BITS = {"kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}
SLOWEST, FASTEST = 10_000, 100_000_000_000

# A link without a limit has one that no machine reaches, so that its bytes are counted as those of
# all others are, and changing a rate never resets a counter.
UNLIMITED = 1_000_000_000_000


class Bucket(NamedTuple):
    """Parameters of `tc tbf`: what may leave at once, and what may wait at either end of a link."""

    rate_bits: int
    burst_bytes: int
    host_queue_bytes: int
    switch_queue_bytes: int


def parse_rate(text: str) -> int:
    """Returns bits per second."""
    if text == "none":
        return UNLIMITED
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", text.strip().lower())
    if not found:
        raise UserError(
            f"{text!r} is not a rate; write a number with kbit, mbit or gbit (100mbit), or none"
        )
    bits = round(float(found[1]) * BITS[found[2]])
    if not SLOWEST <= bits <= FASTEST:
        raise UserError(f"{text!r} is out of range; write a rate from 10kbit to 100gbit, or none")
    return bits


def parse_direction(text: str) -> Direction:
    for direction in get_args(Direction):
        if text == direction:
            return direction  # type: ignore[no-any-return]
    raise UserError(f"{text!r} is not a direction; write send, receive or both")


def rate_text(bits: int) -> str:
    if bits >= UNLIMITED:
        return "none"
    unit = next(u for u in ("gbit", "mbit", "kbit") if bits >= BITS[u] or u == "kbit")
    return f"{bits / BITS[unit]:.12g}{unit}"


def bucket(bits: int) -> Bucket:
    """Returns the bucket for a rate.

    A burst of 4 ms makes up for timers that fire late, and is below 4 % of a second's bytes.
    It is never less than two full packets, without which nothing would pass. Larger packets, which
    the virtual interfaces hand over up to 64 KB at once, are cut by the kernel when they exceed it.

    A switch lets 50 ms of traffic wait, a host a thousand packets, as Linux does: with less, a
    connection that has just begun loses packets before they leave its host, and stalls for 0.2 s.

    Measured over TCP on Linux 6.18: from 1 Mbit/s to 2 Gbit/s the payload is 94 to 96 % of the
    rate; what is missing are the headers of packets of 1500 bytes.
    """
    bytes_per_s = bits / 8
    waiting = min(round(bytes_per_s * 0.05), 64_000_000)
    return Bucket(
        rate_bits=bits,
        burst_bytes=min(max(4_000, round(bytes_per_s * 0.004)), 4_000_000),
        host_queue_bytes=max(1_514_000, waiting),
        switch_queue_bytes=max(64_000, waiting),
    )


def parse_size(text: str) -> int:
    """Returns bytes, from 50MB, 1.5GB or 200KB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(kb|mb|gb)", text.strip().lower())
    size = round(float(found[1]) * {"kb": 1e3, "mb": 1e6, "gb": 1e9}[found[2]]) if found else 0
    if size < 4096:
        raise UserError(
            f"{text!r} is not a disk size; write a number with KB, MB or GB, such as 50MB"
        )
    return size
