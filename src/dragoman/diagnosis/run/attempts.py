"""One attempt of a run, from a start to the next: what it did, what of it is lost, how it ended.

Durations are those of the monotonic clock, so that setting the wall clock changes none. The wall
clock says only when something was, for comparison with another attempt or with the present.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from dragoman.diagnosis.run.record import RunRecord
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    DeviceFound,
    Evaluated,
    Incident,
    StepDone,
)
from dragoman.telemetry.read.tables import (
    Array,
    RunTables,
    Table,
    events_at,
    events_of_attempt,
    last_event_by_rank,
    rows_of_lowest_rank,
    slices_by_file,
)

# A run that emits nothing for this long, and for much longer than it ever did, is taken for dead.
SILENCE_S = 120.0
SILENCE_OVER_LONGEST_GAP = 3.0

AttemptState = Literal["training", "preempted", "failed", "finished", "broken off"]
_WORK = (StepDone, Evaluated, CheckpointSaved)
Work = TypeVar("Work", Evaluated, CheckpointSaved)


class End(NamedTuple):
    at: float
    rank: int
    event: AttemptEnded


@dataclass(frozen=True)
class Lifetime:
    """When an attempt began, worked and fell silent, on the clocks of its leading rank."""

    recorded_ranks: list[int]
    """Ranks that have left any event. The lowest leads, normally rank 0."""
    started_at: float
    started_monotonic_at: float
    worked_at: float
    """The last step, evaluation or save; the start if there is none."""
    worked_monotonic_at: float
    wall_s: float
    """From the first to the last event."""
    longest_gap_s: float
    """The longest time between two events."""
    last_event_at: float
    """The last event of any rank: what to compare with the present."""


@dataclass(frozen=True)
class Attempt(Lifetime):
    number: int
    first_step: int
    ranks: int
    hosts: dict[int, str]
    """By rank; ranks whose host is not known are left out."""
    starts: dict[int, AttemptStarted]
    """By rank."""
    devices: dict[int, DeviceFound]
    """By rank."""
    device_names: list[str]
    """As PyTorch names them, each once."""
    steps: Table
    """All that were done, in order of time, as the lowest rank recorded them."""
    is_lost: Array
    """A mask of `steps`: those that are not part of the model."""
    evaluations: list[Evaluated]
    """Of steps that are part of the model."""
    lost_evaluations: list[Evaluated]
    saves: list[CheckpointSaved]
    saved_step: int
    """The newest step that it could go back to: of its own saves, or that it went on from."""
    incidents: list[Incident]
    """Each once, however many ranks have recorded it."""
    ends: list[End]
    """In order of time."""
    state: AttemptState
    reason: str
    """Why it ended; empty while it goes on."""

    @property
    def leading_rank(self) -> int:
        return self.recorded_ranks[0]

    @property
    def ended_at(self) -> float:
        return self.started_at + self.wall_s

    @property
    def worked_s(self) -> float:
        return self.worked_monotonic_at - self.started_monotonic_at

    @property
    def lost_steps(self) -> int:
        return int(self.is_lost.sum())

    @property
    def lost_s(self) -> float:
        evaluating_s = math.fsum(evaluation.seconds for evaluation in self.lost_evaluations)
        return float(self.steps["step_s"][self.is_lost].sum()) + evaluating_s

    @property
    def last_step(self) -> int:
        """The last step that was done; before the first, the one from which it went on."""
        return int(self.steps["step"][-1]) if len(self.steps) else self.first_step - 1

    @property
    def host_names(self) -> list[str]:
        return list(dict.fromkeys(self.hosts[rank] for rank in sorted(self.hosts)))


class OwnSteps(NamedTuple):
    """The steps of one attempt, and what later attempts made of them."""

    first_step: int
    lost_from_step: float
    """From this step on, a later attempt has replaced the steps of this one; infinite: nowhere."""
    steps: Table
    is_lost: Array


def attempt_of(
    record: RunRecord,
    number: int,
    lifetime: Lifetime,
    starts: dict[int, AttemptStarted],
    own: OwnSteps,
    silent_s: float,
) -> Attempt:
    """`silent_s`: since its last event; infinite for an attempt that another has followed."""
    tables = record.tables
    members = record.members.get(number, [])
    evaluations, lost_evaluations = _kept_and_lost(Evaluated, tables, number, own)
    kept_saves, lost_saves = _kept_and_lost(CheckpointSaved, tables, number, own)
    ends = _ends(tables[AttemptEnded], number)
    state, reason = outcome_of(ends, len(lifetime.recorded_ranks), lifetime.longest_gap_s, silent_s)
    return Attempt(
        **vars(lifetime),
        number=number,
        first_step=own.first_step,
        ranks=max(
            [len(members), len(lifetime.recorded_ranks), *(s.ranks for s in starts.values())]
        ),
        hosts={rank: member.host for rank, member in enumerate(members)}
        | {rank: start.host for rank, start in starts.items() if start.host},
        starts=starts,
        devices=last_event_by_rank(DeviceFound, tables, number),
        device_names=list(
            dict.fromkeys([*(m.device for m in members), *(s.device for s in starts.values())])
        ),
        steps=own.steps,
        is_lost=own.is_lost,
        evaluations=evaluations,
        lost_evaluations=lost_evaluations,
        saves=kept_saves + lost_saves,
        saved_step=max((save.step for save in kept_saves), default=own.first_step - 1),
        incidents=list(dict.fromkeys(events_of_attempt(Incident, tables, number))),
        ends=ends,
        state=state,
        reason=reason,
    )


def least_from(steps: Array) -> Array:
    """Returns the least step at each place or after it; behind the last place, a huge number."""
    return np.minimum.accumulate(np.append(steps, np.iinfo(np.int64).max)[::-1])[::-1]


def _kept_and_lost(
    kind: type[Work], tables: RunTables, number: int, own: OwnSteps
) -> tuple[list[Work], list[Work]]:
    """Returns the evaluations or saves of an attempt that count, and those whose step was done
    again, by itself or by a later attempt."""
    table = tables[kind]
    rows = rows_of_lowest_rank(table, number)
    after = np.searchsorted(own.steps["at"], table["at"][rows], side="right")
    again_from_step = np.minimum(least_from(own.steps["step"])[after], own.lost_from_step)
    is_lost = table["step"][rows] >= again_from_step
    return events_at(kind, table, rows[~is_lost]), events_at(kind, table, rows[is_lost])


def _ends(table: Table, number: int) -> list[End]:
    rows = np.flatnonzero(table["attempt"] == number)
    ends = [
        End(float(table["at"][row]), int(table["rank"][row]), event)
        for row, event in zip(rows, events_at(AttemptEnded, table, rows), strict=True)
    ]
    return sorted(ends, key=lambda end: (end.at, end.rank))


def outcome_of(
    ends: Sequence[End], recorded_ranks: int, longest_gap_s: float, silent_s: float
) -> tuple[AttemptState, str]:
    """Returns what became of an attempt, and why. `ends`: in order of time."""
    failures = [end for end in ends if end.event.state == "failed"]
    if failures:
        # The first rank to fail has the cause; the others then fail for want of it.
        first = failures[0]
        rank = f"rank {first.rank}: " if recorded_ranks > 1 else ""
        return "failed", rank + first.event.reason
    if ends:
        event = ends[0].event
        return "finished" if event.state == "finished" else "preempted", event.reason
    if silent_s > max(SILENCE_S, SILENCE_OVER_LONGEST_GAP * longest_gap_s):
        return "broken off", "it recorded no end: killed, out of memory or a power cut"
    return "training", ""


def lifetimes_of(tables: RunTables) -> dict[int, Lifetime]:
    """By attempt."""
    times: dict[int, dict[int, list[Array]]] = defaultdict(lambda: defaultdict(list))
    for kind, table in tables.by_kind.items():
        for (attempt, rank), rows in slices_by_file(table).items():
            monotonic_at, wall_at = table["monotonic_at"][rows], table["wall_at"][rows]
            is_work = np.full(len(wall_at), kind in _WORK)
            times[attempt][rank].append(np.stack([monotonic_at, wall_at, is_work]))
    compared = tables[ClockOffset]
    ahead_s = {
        file: float(compared["offset_s"][rows.stop - 1])
        for file, rows in slices_by_file(compared).items()
    }
    return {
        attempt: _lifetime(
            {rank: np.concatenate(pieces, axis=1) for rank, pieces in by_rank.items()},
            {rank: ahead_s.get((attempt, rank), 0.0) for rank in by_rank},
        )
        for attempt, by_rank in times.items()
    }


def _lifetime(times: dict[int, Array], ahead_s: dict[int, float]) -> Lifetime:
    """`times`: of each rank, for all its events in any order, monotonic time, wall time and whether
    it was work; `ahead_s`: how far its wall clock was ahead of rank 0's when last compared."""
    monotonic_at, wall_at, is_work = times[min(times)]
    start = np.argmin(monotonic_at)
    worked = np.argmax(np.where(is_work, monotonic_at, -np.inf)) if is_work.any() else start
    return Lifetime(
        recorded_ranks=sorted(times),
        started_at=float(wall_at[start]),
        started_monotonic_at=float(monotonic_at[start]),
        worked_at=float(wall_at[worked]),
        worked_monotonic_at=float(monotonic_at[worked]),
        wall_s=float(monotonic_at.max() - monotonic_at.min()),
        longest_gap_s=float(np.diff(np.sort(monotonic_at)).max(initial=0.0)),
        last_event_at=max(
            float(wall[np.argmax(monotonic)]) - ahead_s[rank]
            for rank, (monotonic, wall, _) in times.items()
        ),
    )
