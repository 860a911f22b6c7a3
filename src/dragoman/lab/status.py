"""What a lab is doing, read from the kernel: links, rates, bytes, processes, disks."""

import os
import time
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from dragoman.lab import kernel
from dragoman.lab.layout import DISK, NOWHERE, Layout, Node
from dragoman.lab.rates import UNLIMITED

STOPPED = "T"


@dataclass(frozen=True)
class Traffic:
    """Bytes of a node's link, headers included, counted as packets of the link's size.

    The counters of the interfaces themselves would depend on the rate: they count what the
    interface receives, which may be 64 KB with one header.
    """

    rate_bits: int | None
    """Of what it sends; None if there is no limit."""
    receive_rate_bits: int | None
    sent_bytes: int
    received_bytes: int
    read_at: float
    """On the monotonic clock, in seconds."""


@dataclass(frozen=True)
class Disk:
    size_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class NodeStatus:
    name: str
    address: str
    rate_bits: int | None
    receive_rate_bits: int | None
    sent_bytes: int
    received_bytes: int
    sent_mbit_per_s: float
    received_mbit_per_s: float
    is_running: bool
    is_paused: bool
    is_cut: bool
    parted_from: tuple[str, ...]
    disk: Disk | None
    processes: tuple[kernel.Process, ...]


def status(layout: Layout, over_s: float) -> list[NodeStatus]:
    """Returns the status of each node; speeds are means over the next `over_s` seconds."""
    before = [traffic(layout, node) for node in layout.nodes]
    time.sleep(over_s)
    return [
        _node_status(layout, node, earlier)
        for node, earlier in zip(layout.nodes, before, strict=True)
    ]


def traffic(layout: Layout, node: Node) -> Traffic:
    sent = _bucket(node.namespace, "eth0")
    received = _bucket(layout.switch, node.name)
    return Traffic(
        _rate_bits(sent), _rate_bits(received), sent["bytes"], received["bytes"], time.monotonic()
    )


def mbit_per_s(before_bytes: int, after_bytes: int, seconds: float) -> float:
    return (after_bytes - before_bytes) * 8 / 1e6 / seconds if seconds > 0 else 0.0


def is_cut(layout: Layout, node: Node) -> bool:
    port = ["ip", "-n", layout.switch, "-json", "link", "show", node.name]
    return "UP" not in kernel.read_json(port)[0]["flags"]


def partitioned_from(node: Node) -> set[IPv4Address]:
    """Returns the addresses that the node is partitioned from."""
    neighbors = ["ip", "-n", node.namespace, "-json", "neighbor", "show", "nud", "permanent"]
    return {
        IPv4Address(entry["dst"])
        for entry in kernel.read_json(neighbors)
        if entry.get("lladdr") == NOWHERE
    }


def is_paused(processes: tuple[kernel.Process, ...] | list[kernel.Process]) -> bool:
    return bool(processes) and all(process.state == STOPPED for process in processes)


def _node_status(layout: Layout, node: Node, before: Traffic) -> NodeStatus:
    now = traffic(layout, node)
    seconds = now.read_at - before.read_at
    processes = kernel.processes(node.namespace)
    parted = partitioned_from(node)
    return NodeStatus(
        name=node.name,
        address=str(node.address),
        rate_bits=now.rate_bits,
        receive_rate_bits=now.receive_rate_bits,
        sent_bytes=now.sent_bytes,
        received_bytes=now.received_bytes,
        sent_mbit_per_s=mbit_per_s(before.sent_bytes, now.sent_bytes, seconds),
        received_mbit_per_s=mbit_per_s(before.received_bytes, now.received_bytes, seconds),
        is_running=bool(processes),
        is_paused=is_paused(processes),
        is_cut=is_cut(layout, node),
        parted_from=tuple(other.name for other in layout.nodes if other.address in parted),
        disk=_disk(node),
        processes=tuple(processes),
    )


def _bucket(namespace: str, device: str) -> dict[str, Any]:
    shown = ["tc", "-n", namespace, "-s", "-json", "qdisc", "show", "dev", device]
    return next(entry for entry in kernel.read_json(shown) if entry.get("root"))


def _rate_bits(bucket: dict[str, Any]) -> int | None:
    bits = int(bucket["options"]["rate"]) * 8
    return None if bits >= UNLIMITED else bits


def _disk(node: Node) -> Disk | None:
    place = node.folder / DISK
    if place not in kernel.mounts_below(place):
        return None
    size = os.statvfs(place)
    return Disk(size.f_blocks * size.f_frsize, size.f_bavail * size.f_frsize)
