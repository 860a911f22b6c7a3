"""An attempt as its ranks have told of it, event by event. Pure, without torch.

`faults` walks along the events of one rank, the leading one; of the others it needs who they were,
what they said last, and when.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dragoman.diagnosis.run.lifetimes import End
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    ClockOffset,
    Stamped,
    StepDone,
)
from dragoman.telemetry.read.events import Recorded


@dataclass(frozen=True)
class ToldAttempt:
    number: int
    leading: list[Stamped]
    """Events of the lowest rank that has left any, normally rank 0: the attempt's clock."""
    starts: dict[int, AttemptStarted]
    """By rank."""
    ends: list[End]
    """In order of time."""
    last_step: int | None
    """The last that any rank has recorded."""
    last_sign_at: float
    """Of any rank, on the leading rank's wall clock."""

    @property
    def begun_at(self) -> float:
        return self.leading[0].wall_at

    @property
    def ranks(self) -> int:
        return max((start.ranks for start in self.starts.values()), default=0)

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(start.host for _, start in sorted(self.starts.items())))

    def host_of(self, rank: int) -> str:
        return self.starts[rank].host if rank in self.starts else ""

    def first_step(self, last_done: int) -> int:
        """As it said at its start; else the first that it did; else the one after `last_done`."""
        if self.starts:
            return self.starts[min(self.starts)].first_step
        recorded = (stamped.event for stamped in self.leading)
        return next((e.step for e in recorded if isinstance(e, StepDone)), last_done + 1)


def attempts_in(events: Iterable[Recorded]) -> list[ToldAttempt]:
    found: dict[int, dict[int, list[Stamped]]] = defaultdict(lambda: defaultdict(list))
    for attempt, rank, stamped in events:
        found[attempt][rank].append(stamped)
    return [_attempt_of(number, found[number]) for number in sorted(found)]


def _attempt_of(number: int, by_rank: Mapping[int, list[Stamped]]) -> ToldAttempt:
    starts: dict[int, AttemptStarted] = {}
    ends: list[End] = []
    last_steps: list[int] = []
    last_sign_at = 0.0
    for rank, events in by_rank.items():
        ahead_s = 0.0
        last_step = None
        for _, _, event in events:
            match event:
                case ClockOffset(offset_s=ahead_s):
                    pass
                case AttemptStarted():
                    starts[rank] = event
                case StepDone(step=step):
                    last_step = step
        last_sign_at = max(last_sign_at, events[-1].wall_at - ahead_s)
        last_steps += [] if last_step is None else [last_step]
        ends += [
            End(wall_at - ahead_s, rank, event)
            for wall_at, _, event in events
            if isinstance(event, AttemptEnded)
        ]
    return ToldAttempt(
        number=number,
        leading=by_rank[min(by_rank)],
        starts=starts,
        ends=sorted(ends, key=lambda end: end.at),
        last_step=max(last_steps, default=None),
        last_sign_at=last_sign_at,
    )
