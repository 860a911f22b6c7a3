"""How near did memory come to its limit?"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.commands import setting_line
from dragoman.diagnosis.findings import Advice, Figure, Finding
from dragoman.diagnosis.learning.remedies import less_memory
from dragoman.diagnosis.phrasing import count, percent, size
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault
from dragoman.diagnosis.run.hosts import host_of
from dragoman.diagnosis.speed import advice

NEAR = 0.92
"""Of a device's memory: a longer batch than any before may need so much more."""
HOST_LEFT = 0.05
"""Of a host's memory: the system begins to swap, or ends a process."""


SAFE_SHARE = 0.85
"""Of a device's memory: what micro-batches of the right size come to."""
LEAST_TOKENS = 256
"""In a micro-batch, to hold the longest sentences."""


class MemoryPeak(NamedTuple):
    where: str
    used_bytes: float
    total_bytes: float
    is_of_ranks: bool = True
    """Whether the ranks themselves use it; else the host says that it is full."""

    @property
    def share(self) -> float:
        return self.used_bytes / self.total_bytes


def answer(run: RunFacts) -> Finding | None:
    """Returns None where memory stayed away from its limit, or was not recorded."""
    peaks = sorted([*device_peaks(run), *_host_peaks(run)], key=lambda peak: peak.share)
    near = {peak.where: peak for peak in peaks if peak.share >= NEAR}
    out_of_memory = sum(
        incident.category == "out-of-memory"
        for attempt in run.attempts
        for incident in attempt.incidents
    )
    if not near and not out_of_memory:
        return None
    sentences = []
    ended = _ended_by_memory(run)
    if ended:
        sentences.append(
            f"{ended.host or 'A worker'} ran out of memory with a single pair at a time, which "
            f"ended the run after step {ended.step:,}."
        )
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
        verdict="ran out" if out_of_memory or ended else "near its limit",
        confidence="high",
        sentence=" ".join(sentences),
        evidence=[
            *(Figure(f"{peak.where}, peak", peak.share, "share") for peak in near.values()),
            Figure("steps that ran out of memory", out_of_memory, "steps"),
        ],
        advice=_advice(run, list(near.values()), out_of_memory),
        plain=_plain(list(near.values()), out_of_memory, ended),
    )


def _ended_by_memory(run: RunFacts) -> Fault | None:
    last = run.faults.unresumed
    return last if last and last.cause == "out-of-memory" else None


def _plain(near: Sequence[MemoryPeak], out_of_memory: int, ended: Fault | None) -> str:
    if ended:
        where = f" of {ended.host}" if ended.host else ""
        return f"Yes: the run ended because the memory{where} was full."
    if out_of_memory:
        return f"Yes: {count(out_of_memory, 'step')} needed more memory than there was."
    fullest = max(near, key=lambda peak: peak.share)
    return f"Yes: the memory of {fullest.where} was nearly full."


def _advice(run: RunFacts, near: Sequence[MemoryPeak], out_of_memory: int) -> list[Advice]:
    """Returns smaller micro-batches where ranks fill the memory, and a look at the processes where
    it is the host's that something else may fill."""
    if ended := _ended_by_memory(run):
        where = f" of {ended.host}" if ended.host else ""
        return less_memory(run, f"the memory{where} does not hold a single long pair")
    own = [peak.share for peak in near if peak.is_of_ranks]
    now = run.config.training.micro_batch_limit
    if own or out_of_memory:
        fitting = SAFE_SHARE / max([*own, 1.0 if out_of_memory else 0.0])
        tokens = max(LEAST_TOKENS, int(now * fitting) // 64 * 64)
        if tokens >= now:
            return []
        return [
            Advice(
                f"Compute fewer tokens at once in the next run, {tokens:,} instead of {now:,}: "
                "that bounds memory, and leaves tokens_per_update, and so the result, as it is "
                "but for rounding.",
                setting_line("training.micro_batch_tokens", tokens),
            )
        ]
    host = max(near, key=lambda peak: peak.share).where
    show = "ps -eo pid,user,rss,args --sort=-rss | head"
    return [
        Advice(
            f"See what fills the memory of {host}, while it runs.", advice.on_host(run, host, show)
        )
    ]


def device_peaks(run: RunFacts) -> list[MemoryPeak]:
    return [peak for attempt in run.attempts for peak in _device_peaks(attempt, run)]


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
            found.append(MemoryPeak(host, total - float(left.min()), total, is_of_ranks=False))
    return found
