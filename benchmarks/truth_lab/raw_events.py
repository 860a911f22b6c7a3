"""What happened in a run, from the lines that its ranks wrote, on one clock.

The hosts of a lab share one kernel, and so one monotonic clock: when a rank was ready and when its
gradients had arrived can be compared between hosts directly. The diagnosis has no such clock.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class RawStep:
    attempt: int
    step: int
    hosts: tuple[str, ...]
    """Of each rank."""
    began_at: float
    """Wall time at which the first rank began."""
    ended_at: float
    step_s: float
    """Mean over the ranks."""
    network_s: float
    """From the moment when the last rank is ready until all have all gradients."""
    straggling_s: float
    """From the moment when the first rank is ready until the last one is."""
    data_s: float
    """What every rank waits for data at least."""
    last_host: str
    late_data_s: float
    """So much longer than the first rank, the last one waited for data."""
    backward_s: float
    computing_s: dict[str, float]
    """Host -> forward and backward."""


@dataclass(frozen=True)
class RawShares:
    step_s: float
    network: float
    straggling: float
    data: float
    for_host: dict[str, float]
    """Host -> waiting for it, as a share of all time."""

    @property
    def computing(self) -> float:
        return 1.0 - self.network - self.straggling - self.data


def read_steps(run: Path) -> list[RawStep]:
    """Returns the steps that the model is made of, without the first one of each attempt."""
    lines: dict[tuple[int, int], dict[int, dict[str, Any]]] = defaultdict(dict)
    hosts: dict[int, dict[int, str]] = defaultdict(dict)
    sizes: dict[int, int] = {}
    for path in sorted(run.glob("events/attempt-*-rank-*.jsonl")):
        attempt = rank = 0
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # torn by a kill
            if line["kind"] == "attempt-started":
                attempt, rank = line["attempt"], line["rank"]
                sizes[attempt] = line["ranks"]
                hosts[attempt][rank] = line["host"]
            elif line["kind"] == "step":
                lines[attempt, line["step"]][rank] = line
    newest = {step: attempt for attempt, step in sorted(lines)}
    firsts = {min(step for number, step in lines if number == attempt) for attempt in sizes}
    return [
        _step(attempt, step, [hosts[attempt][rank] for rank in sorted(own)], own)
        for (attempt, step), own in sorted(lines.items(), key=lambda item: item[0][1])
        if newest[step] == attempt
        and len(own) == sizes[attempt]
        and (step not in firsts or not _is_first(lines, attempt, step))
    ]


def _is_first(lines: dict[tuple[int, int], Any], attempt: int, step: int) -> bool:
    return step == min(number for other, number in lines if other == attempt)


def _step(attempt: int, step: int, hosts: list[str], own: dict[int, dict[str, Any]]) -> RawStep:
    rows = [own[rank] for rank in sorted(own)]
    parts = [row["parts_s"] for row in rows]
    began = [row["monotonic_at"] - row["step_s"] for row in rows]
    ready = [
        at + part["data"] + part["forward"] + part["backward"]
        for at, part in zip(began, parts, strict=True)
    ]
    ends = [at + part.get("communication", 0.0) for at, part in zip(ready, parts, strict=True)]
    last, first = ready.index(max(ready)), ready.index(min(ready))
    computing: dict[str, float] = {}
    for host, part in zip(hosts, parts, strict=True):
        computing[host] = max(computing.get(host, 0.0), part["forward"] + part["backward"])
    return RawStep(
        attempt=attempt,
        step=step,
        hosts=tuple(hosts),
        began_at=min(row["wall_at"] - row["step_s"] for row in rows),
        ended_at=max(row["wall_at"] for row in rows),
        step_s=fmean(row["step_s"] for row in rows),
        network_s=max(0.0, max(ends) - max(ready)) if len(rows) > 1 else 0.0,
        straggling_s=max(ready) - min(ready),
        data_s=min(part["data"] for part in parts),
        last_host=hosts[last],
        late_data_s=max(0.0, parts[last]["data"] - parts[first]["data"]),
        backward_s=fmean(part["backward"] for part in parts),
        computing_s=computing,
    )


def shares_over(steps: list[RawStep]) -> RawShares:
    total_s = sum(step.step_s for step in steps)
    for_host: dict[str, float] = defaultdict(float)
    for step in steps:
        for_host[step.last_host] += step.straggling_s / total_s
    return RawShares(
        step_s=total_s / len(steps),
        network=sum(step.network_s for step in steps) / total_s,
        straggling=sum(step.straggling_s for step in steps) / total_s,
        data=sum(step.data_s for step in steps) / total_s,
        for_host=dict(for_host),
    )
