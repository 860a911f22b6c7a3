"""How near did memory come to its limit?"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import count, percent, size
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import host_of

NEAR = 0.92
"""Of a device's memory: a longer batch than any before may need so much more."""
HOST_LEFT = 0.05
"""Of a host's memory: the system begins to swap, or ends a process."""


class MemoryPeak(NamedTuple):
    where: str
    used_bytes: float
    total_bytes: float

    @property
    def share(self) -> float:
        return self.used_bytes / self.total_bytes


def answer(run: RunFacts) -> Finding | None:
    """Returns None where memory stayed away from its limit, or was not recorded."""
    peaks = [peak for attempt in run.attempts for peak in _device_peaks(attempt, run)]
    peaks = sorted([*peaks, *_host_peaks(run)], key=lambda peak: peak.share)
    near = {peak.where: peak for peak in peaks if peak.share >= NEAR}
    out_of_memory = sum(
        incident.category == "out-of-memory"
        for attempt in run.attempts
        for incident in attempt.incidents
    )
    if not near and not out_of_memory:
        return None
    sentences = []
    if near:
        fullest = max(near.values(), key=lambda peak: peak.share)
        sentences.append(
            f"Memory of {fullest.where} was {percent(fullest.share)} full at its peak: "
            f"{size(fullest.used_bytes)} of {size(fullest.total_bytes)}."
        )
    if out_of_memory:
        sentences.append(
            f"{count(out_of_memory, 'step')} ran out of memory and had to be done again in pieces."
        )
    return Finding(
        verdict="ran out" if out_of_memory else "near its limit",
        confidence="high",
        sentence=" ".join(sentences),
        evidence=[
            *(Figure(f"{peak.where}, peak", peak.share, "share") for peak in near.values()),
            Figure("steps that ran out of memory", out_of_memory, "steps"),
        ],
        advice=(
            "Lower training.micro_batch_tokens: it bounds memory and leaves tokens_per_update, "
            "and so the result, as it is but for rounding. A run keeps its own; take it for the "
            "next one."
        ),
    )


def _device_peaks(attempt: Attempt, run: RunFacts) -> list[MemoryPeak]:
    """Returns the peak of each GPU; on CPUs the ranks of a host share its memory."""
    gpus: list[MemoryPeak] = []
    used_on_host: dict[str, float] = defaultdict(float)
    host_bytes: dict[str, float] = {}
    for rank, device in attempt.devices.items():
        steps = run.steps_by_rank.get(rank)
        if steps is None or not device.memory_bytes:
            continue
        own = steps["memory_peak_bytes"][steps["attempt"] == attempt.number]
        if not np.isfinite(own).any():
            continue
        used, host = float(np.nanmax(own)), host_of(attempt, rank)
        if device.device.startswith("cuda"):
            gpus.append(MemoryPeak(f"{device.device} on {host}", used, device.memory_bytes))
        else:
            used_on_host[host] += used
            host_bytes[host] = device.memory_bytes
    return gpus + [MemoryPeak(host, used, host_bytes[host]) for host, used in used_on_host.items()]


def _host_peaks(run: RunFacts) -> list[MemoryPeak]:
    """Returns the hosts whose own sensors say that next to nothing was left."""
    found = []
    for host, sensors in run.hosts.items():
        left = sensors.levels("memory/available_bytes")
        total = sensors.mean("memory/total_bytes")
        if len(left) and total > 0 and left.min() < HOST_LEFT * total:
            found.append(MemoryPeak(host, total - float(left.min()), total))
    return found
