"""Bytes that have passed a network interface, from the kernel's counters."""

from typing import NamedTuple

import psutil


class Passed(NamedTuple):
    sent: int
    received: int

    def since(self, earlier: "Passed") -> "Passed":
        return Passed(self.sent - earlier.sent, self.received - earlier.received)


def passed(interface: str) -> Passed | None:
    """None: there is no such interface, or no counters."""
    counters = (psutil.net_io_counters(pernic=True) or {}).get(interface)
    return Passed(counters.bytes_sent, counters.bytes_recv) if counters else None


def packet_size(interface: str) -> int:
    """The largest packet, in bytes without the Ethernet header; 1,500 where nobody knows."""
    state = psutil.net_if_stats().get(interface)
    return state.mtu if state and state.mtu else 1500
