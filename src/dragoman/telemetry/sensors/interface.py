"""Bytes that have passed a network interface, from the kernel's counters."""

from typing import NamedTuple

import psutil


class InterfaceCounters(NamedTuple):
    """Bytes since the interface came up."""

    sent: int
    received: int

    def since(self, earlier: "InterfaceCounters") -> "InterfaceCounters":
        return InterfaceCounters(self.sent - earlier.sent, self.received - earlier.received)


def read_interface_counters(interface: str) -> InterfaceCounters | None:
    """Returns None where there is no such interface, or no counters."""
    counters = (psutil.net_io_counters(pernic=True) or {}).get(interface)
    return InterfaceCounters(counters.bytes_sent, counters.bytes_recv) if counters else None


def packet_size(interface: str) -> int:
    """Returns the largest packet, in bytes without the Ethernet header; 1,500 if unknown."""
    state = psutil.net_if_stats().get(interface)
    return state.mtu if state and state.mtu else 1500
