"""What happened, in order: the events of all ranks come in, one value an attempt goes out.

A resumed run goes on from its last checkpoint. Whatever an earlier attempt did after that step is
not part of the model: it is lost, its time was spent, and a later attempt takes its place.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Evaluated,
    Stamped,
    StepDone,
    Trouble,
)
from dragoman.telemetry.reader import Recorded

Kind = TypeVar("Kind")


class End(NamedTuple):
    at: float
    rank: int
    event: AttemptEnded


@dataclass(frozen=True)
class Attempt:
    """One life of the run. Its clock is that of the lowest rank with events, normally rank 0."""

    number: int
    first_step: int
    lost_from_step: float
    """From this step on, a later attempt has taken the place of this one; infinite: nowhere."""
    started_at: float
    last_event_at: float
    wall_s: float
    longest_gap_s: float
    """The longest time between two events."""
    starts: dict[int, AttemptStarted]
    """By rank."""
    steps_by_rank: dict[int, list[StepDone]]
    evaluations: list[Evaluated]
    saves: list[CheckpointSaved]
    troubles: list[Trouble]
    """Once, however many ranks tell it."""
    ends: list[End]

    @property
    def steps(self) -> list[StepDone]:
        return self.steps_by_rank[min(self.steps_by_rank)]

    @property
    def lost_steps(self) -> list[StepDone]:
        return [step for step in self.steps if step.step >= self.lost_from_step]

    @property
    def lost_s(self) -> float:
        evaluations = (e.seconds for e in self.evaluations if e.step >= self.lost_from_step)
        return math.fsum(step.step_s for step in self.lost_steps) + math.fsum(evaluations)

    @property
    def last_step(self) -> int:
        return max((step.step for step in self.steps), default=self.first_step - 1)


def attempts_of(events: Iterable[Recorded]) -> list[Attempt]:
    """In order of their numbers."""
    found: dict[int, dict[int, list[Stamped]]] = defaultdict(lambda: defaultdict(list))
    for attempt, rank, stamped in events:
        found[attempt][rank].append(stamped)
    attempts: list[Attempt] = []
    lost_from_step = math.inf
    for number in sorted(found, reverse=True):
        attempts.insert(0, _attempt(number, found[number], lost_from_step))
        lost_from_step = min(lost_from_step, attempts[0].first_step)
    return attempts


def counting_steps(attempts: Sequence[Attempt]) -> dict[int, list[StepDone]]:
    """Rank -> the steps that the model is made of, each once and in order."""
    steps: dict[int, list[StepDone]] = defaultdict(list)
    for attempt in attempts:
        for rank, done in attempt.steps_by_rank.items():
            steps[rank] += [step for step in done if step.step < attempt.lost_from_step]
    return dict(steps)


def counting_evaluations(attempts: Sequence[Attempt]) -> list[Evaluated]:
    return [
        evaluation
        for attempt in attempts
        for evaluation in attempt.evaluations
        if evaluation.step < attempt.lost_from_step
    ]


def _attempt(number: int, by_rank: dict[int, list[Stamped]], lost_from_step: float) -> Attempt:
    leading = by_rank[min(by_rank)]
    clock = [stamped.monotonic_at for stamped in leading]
    starts = {
        rank: start for rank, events in by_rank.items() for start in _of(AttemptStarted, events)
    }
    steps_by_rank = {rank: _of(StepDone, by_rank[rank]) for rank in sorted(by_rank)}
    first_seen = min((step.step for steps in steps_by_rank.values() for step in steps), default=1)
    return Attempt(
        number=number,
        first_step=starts[min(starts)].first_step if starts else first_seen,
        lost_from_step=lost_from_step,
        started_at=leading[0].wall_at,
        last_event_at=max(events[-1].wall_at for events in by_rank.values()),
        wall_s=clock[-1] - clock[0],
        longest_gap_s=max((after - before for before, after in pairwise(clock)), default=0.0),
        starts=starts,
        steps_by_rank=steps_by_rank,
        evaluations=_of(Evaluated, leading),
        saves=_of(CheckpointSaved, leading),
        troubles=list(
            dict.fromkeys(
                trouble for events in by_rank.values() for trouble in _of(Trouble, events)
            )
        ),
        ends=[
            End(stamped.wall_at, rank, stamped.event)
            for rank, events in by_rank.items()
            for stamped in events
            if isinstance(stamped.event, AttemptEnded)
        ],
    )


def _of(kind: type[Kind], events: Iterable[Stamped]) -> list[Kind]:
    return [stamped.event for stamped in events if isinstance(stamped.event, kind)]
