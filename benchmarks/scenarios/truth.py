"""What a diagnosis should come to, from the simulation itself and not from its records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.config import Config
from scenarios.attempt_events import Attempt, saves_of
from scenarios.world import Floats, World


@dataclass(frozen=True)
class Truth:
    """Of steps that count: no later attempt or rollback has replaced them. Means and medians leave
    out the first step of each attempt, in which memory is found and kernels are chosen."""

    steps: int
    wall_s: float
    """From the first start to the last sign, with what lies between attempts."""
    attempts_s: float
    """The same without what lies between."""
    attempt_seconds: tuple[float, ...]
    """Of each attempt."""
    ended_at: float
    mean_step_s: float
    mean_step_by_hosts: Mapping[int, float]
    """Number of hosts -> seconds."""
    median_step_s: float
    network_s: float
    """Exposed, in the mean."""
    straggling_s: float
    data_s: float
    computing_share: float
    """Forward and backward of the mean rank."""
    sent_bytes_per_step: float
    lost_steps: int
    evaluating_s: float
    evaluations: tuple[int, ...]
    """Steps, of those that count."""

    @property
    def network_share(self) -> float:
        return self.network_s / self.mean_step_s

    @property
    def straggling_share(self) -> float:
        return self.straggling_s / self.mean_step_s


def truth_of(world: World, config: Config, attempts: Sequence[Attempt]) -> Truth:
    counting = [(a.pace, places) for a, places in _counting(attempts) if len(places)]
    usual = [(pace, places[places > 0]) for pace, places in counting]

    def all_of(name: str) -> Floats:
        """Of each step; of what differs by rank the mean."""
        values = [np.atleast_2d(getattr(pace, name)).mean(axis=0)[places] for pace, places in usual]
        return np.concatenate(values) if any(map(len, values)) else np.array([np.nan])

    def part(name: str) -> float:
        means = [
            pace.parts[name][:, places].mean(axis=0) for pace, places in usual if name in pace.parts
        ]
        return float(np.concatenate(means).mean()) if any(map(len, means)) else float("nan")

    done = sum(len(a.pace.steps) for a in attempts)
    steps = sum(len(places) for _, places in counting)
    lost_at_the_end = 0
    if attempts and attempts[-1].life.state in ("", "failed"):
        last = attempts[-1]
        saved = [int(s.step) for at, s in saves_of(config, last) if at <= last.pace.ends_s]
        kept = max([*saved, last.life.first_step - 1])
        lost_at_the_end = max(0, last.life.last_step - kept)
    step_s = all_of("step_s")
    wall_s = attempts[-1].begun_s + attempts[-1].pace.ends_s if attempts else 0.0
    return Truth(
        steps=steps,
        wall_s=wall_s,
        attempts_s=sum(a.pace.ends_s for a in attempts),
        attempt_seconds=tuple(a.pace.ends_s for a in attempts),
        ended_at=world.began_at + wall_s,
        mean_step_s=float(step_s.mean()),
        mean_step_by_hosts=_mean_by_hosts(attempts),
        median_step_s=float(np.median(step_s)),
        network_s=float(all_of("exposed_s").mean()),
        straggling_s=float(all_of("straggling_s").mean()),
        data_s=part("data"),
        computing_share=(part("forward") + part("backward")) / float(step_s.mean()),
        sent_bytes_per_step=float(all_of("sent_bytes").mean()),
        lost_steps=done - steps + lost_at_the_end,
        evaluating_s=sum(e.seconds for a in attempts for e in a.evaluations),
        evaluations=tuple(
            int(pace.steps[place])
            for pace, places in counting
            for place in np.intersect1d(pace.evaluated, places)
        ),
    )


def _mean_by_hosts(attempts: Sequence[Attempt]) -> dict[int, float]:
    seconds: dict[int, list[Floats]] = {}
    for attempt, places in _counting(attempts):
        usual = attempt.pace.step_s.mean(axis=0)[places[places > 0]]
        if len(usual):
            seconds.setdefault(len(attempt.world.machines.hosts), []).append(usual)
    return {hosts: float(np.concatenate(each).mean()) for hosts, each in seconds.items()}


def _counting(attempts: Sequence[Attempt]) -> Iterator[tuple[Attempt, Any]]:
    """With the places of steps that no later attempt or rollback has replaced."""
    lost_from = float("inf")
    pairs = []
    for attempt in reversed(attempts):
        steps = attempt.pace.steps
        is_last = np.zeros(len(steps), dtype=bool)
        # Counted from the end, the first of each number is the one that stays.
        places = len(steps) - 1 - np.unique(steps[::-1], return_index=True)[1]
        is_last[places] = True
        pairs.append((attempt, np.flatnonzero(is_last & (steps < lost_from))))
        lost_from = min(lost_from, attempt.life.first_step)
    yield from reversed(pairs)
