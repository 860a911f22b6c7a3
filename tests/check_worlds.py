"""Clusters whose truth is known, and results of checks to show."""

import random
from collections.abc import Mapping, Sequence

from dragoman.check.result import CheckResult, Finding, HostFacts, Transfer

MBIT = 1e6 / 8
PAYLOAD = 0.956
"""Of packets of 1500 bytes."""


def rates(
    send: Mapping[str, float],
    receive: Mapping[str, float] | None = None,
    paths: Mapping[tuple[str, str], float] | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> dict[tuple[str, str], float]:
    """What pairs measure where ports are set to so many Mbit/s; paths without a limit have none."""
    rng = random.Random(seed)
    receive, paths = receive or send, paths or {}
    return {
        (a, b): PAYLOAD
        * MBIT
        * min(send[a], receive[b], paths.get((a, b), 1e9))
        * rng.uniform(1 - noise, 1 + noise)
        for a in send
        for b in send
        if a != b
    }


def names(count: int) -> list[str]:
    return [f"node{number}" for number in range(1, count + 1)]


def ports(count: int, **slow: float) -> dict[str, float]:
    """All at 1000 Mbit/s but for some."""
    return dict.fromkeys(names(count), 1000.0) | slow


def transfers(of: Mapping[tuple[str, str], float], trip_s: float = 1e-4) -> list[Transfer]:
    return [
        Transfer(
            sender=sender,
            receiver=receiver,
            one_flow_bytes_per_s=rate,
            several_flows_bytes_per_s=rate,
            round_trip_s=trip_s,
        )
        for (sender, receiver), rate in of.items()
    ]


def host(name: str = "node1", **changes: object) -> HostFacts:
    keys: dict[str, object] = {
        "name": name,
        "address": "10.0.0.1",
        "interface": "eth0",
        "link_bytes_per_s": None,
        "python": "3.11.7",
        "torch": "2.13.0+cpu",
        "dragoman": "1",
        "driver": None,
        "cores": 4,
        "workers": 1,
        "device": "AMD EPYC",
        "device_memory_bytes": 8 * 10**9,
        "gemm_flops_per_s": 1e11,
        "free_disk_bytes": 10**11,
        "disk_bytes_per_s": 5e8,
        "clock_offset_s": 0.0,
        "data_hash": "a" * 64,
    }
    return HostFacts(**{**keys, **changes})


def result(
    of: Mapping[tuple[str, str], float], findings: Sequence[Finding] = (), count: int = 4
) -> CheckResult:
    return CheckResult(
        dragoman="1",
        checked_at="2026-01-01T00:00:00+00:00",
        seconds=9.0,
        recipe=None,
        workload_hash=None,
        parameters=None,
        hosts=tuple(host(name) for name in names(count)),
        transfers=tuple(transfers(of)),
        findings=tuple(findings)
        or (Finding(subject="reach", verdict="good", sentence="All hosts answer."),),
    )
