"""How near did memory come to its limit?"""

import math
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import count, percent, size
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import host_of

KEY = "memory"
QUESTION = "Did memory come near its limit?"

NEAR = 0.92
"""Of a device's memory: a longer batch than any before may need so much more."""
HOST_LEFT = 0.05
"""Of a host's memory: the system begins to swap, or ends a process."""


class Peak(NamedTuple):
    where: str
    used_bytes: float
    total_bytes: float

    @property
    def share(self) -> float:
        return self.used_bytes / self.total_bytes


def finding(run: RunFacts) -> Finding | None:
    """None: it stayed away from it, or was not recorded."""
    peaks = [
        *(peak for attempt in run.attempts for peak in peaks_of(attempt, run)),
        *_of_hosts(run),
    ]
    near = {peak.where: peak for peak in sorted(peaks, key=lambda p: p.share) if _is_near(peak)}
    shortages = sum(
        trouble.category == "out-of-memory"
        for attempt in run.attempts
        for trouble in attempt.incidents
    )
    if not near and not shortages:
        return None
    fullest = max(near.values(), key=lambda peak: peak.share, default=None)
    sentences = []
    if fullest:
        sentences.append(
            f"Memory of {fullest.where} was {percent(fullest.share)} full at its peak: "
            f"{size(fullest.used_bytes)} of {size(fullest.total_bytes)}."
        )
    if shortages:
        sentences.append(
            f"{count(shortages, 'step')} ran out of memory and had to be done again in pieces."
        )
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict="ran out" if shortages else "near its limit",
        confidence="high",
        sentence=" ".join(sentences),
        evidence=[
            *(Figure(f"{peak.where}, peak", peak.share, "share") for peak in near.values()),
            Figure("steps that ran out of memory", shortages, "steps"),
        ],
        advice=(
            "Lower training.micro_batch_tokens: it bounds memory and leaves tokens_per_update, "
            "and so the result, as it is but for rounding. A run keeps its own; take it for the "
            "next one."
        ),
    )


def _is_near(peak: Peak) -> bool:
    return peak.share >= NEAR


def peaks_of(attempt: Attempt, run: RunFacts) -> list[Peak]:
    """Of each GPU; on CPUs the ranks of a host share its memory."""
    found: list[Peak] = []
    on_host: dict[str, list[float]] = {}
    host_bytes: dict[str, float] = {}
    for rank, device in attempt.devices.items():
        steps = run.steps_by_rank.get(rank)
        if steps is None or not device.memory_bytes:
            continue
        own = steps["memory_peak_bytes"][steps["attempt"] == attempt.number]
        used = float(np.nanmax(own)) if np.isfinite(own).any() else math.nan
        if math.isnan(used):
            continue
        host = host_of(attempt, rank)
        if device.device.startswith("cuda"):
            found.append(Peak(f"{device.device} on {host}", used, device.memory_bytes))
        else:
            on_host.setdefault(host, []).append(used)
            host_bytes[host] = device.memory_bytes
    return found + [Peak(host, math.fsum(used), host_bytes[host]) for host, used in on_host.items()]


def _of_hosts(run: RunFacts) -> list[Peak]:
    """What the hosts themselves say, when next to nothing is left."""
    found = []
    for host, sensors in run.hosts.items():
        left = sensors.levels("memory/available_bytes")
        total = sensors.mean("memory/total_bytes")
        if len(left) and total > 0 and left.min() < HOST_LEFT * total:
            found.append(Peak(host, total - float(left.min()), total))
    return found
