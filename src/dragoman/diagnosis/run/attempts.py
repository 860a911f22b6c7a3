"""One life of a run, between two starts: what it did, what of it is lost, how it ended."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.lifetimes import AttemptState, End, Lifetime, ending_of
from dragoman.diagnosis.run.record import RunRecord
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    DeviceFound,
    Evaluated,
    Incident,
)
from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.rows import (
    events_by_rank,
    events_of,
    events_of_attempt,
    rows_of_lowest,
)
from dragoman.telemetry.read.tables import RunTables, Table


class OwnSteps(NamedTuple):
    """What an attempt did."""

    first_step: int
    lost_from_step: float
    steps: Table
    is_lost: Array


@dataclass(frozen=True)
class Attempt:
    """One life of the run. Its clock is that of the lowest rank with events, normally rank 0."""

    number: int
    first_step: int
    lost_from_step: float
    """From this step on, a later attempt has taken the place of this one; infinite: nowhere."""
    started_at: float
    last_event_at: float
    """Of any rank, on the wall clock as it stood then: what to compare with the present."""
    wall_s: float
    """Until the last event, on the monotonic lifetime: setting the wall clock changes nothing."""
    longest_gap_s: float
    """The longest time between two events."""
    ranks: int
    hosts: dict[int, str]
    """By rank; ranks whose host nobody knows are left out."""
    starts: dict[int, AttemptStarted]
    """By rank."""
    devices: dict[int, DeviceFound]
    """By rank."""
    steps: Table
    """All that were done, in the order of time, as the lowest rank saw them."""
    is_lost: Array
    """Of each step: it is not part of the model."""
    evaluations: list[Evaluated]
    lost_evaluations: list[Evaluated]
    """Among the ones above."""
    saves: list[CheckpointSaved]
    incidents: list[Incident]
    """Once, however many ranks tell it."""
    ends: list[End]
    """In the order of time."""
    state: AttemptState
    reason: str
    """Why it ended; empty while it goes on."""

    @property
    def ended_at(self) -> float:
        return self.started_at + self.wall_s

    @property
    def lost_steps(self) -> int:
        return int(self.is_lost.sum())

    @property
    def lost_s(self) -> float:
        evaluating_s = math.fsum(evaluation.seconds for evaluation in self.lost_evaluations)
        return float(self.steps["step_s"][self.is_lost].sum()) + evaluating_s

    @property
    def last_step(self) -> int:
        """The last that counts or would have counted; before the first: the one before it."""
        return int(self.steps["step"][-1]) if len(self.steps) else self.first_step - 1

    @property
    def host_names(self) -> list[str]:
        return list(dict.fromkeys(self.hosts[rank] for rank in sorted(self.hosts)))


def attempt_of(
    record: RunRecord,
    number: int,
    lifetime: Lifetime,
    starts: dict[int, AttemptStarted],
    own: OwnSteps,
    silent_s: float,
) -> Attempt:
    """`silent_s`: since its last sign; infinite for one that another has followed."""
    tables = record.tables
    members = dict(enumerate(record.members.get(number, [])))
    evaluations, lost_evaluations = _evaluations(tables[Evaluated], number, own)
    saved = tables[CheckpointSaved]
    ends = _ends(tables, number)
    state, reason = ending_of(ends, lifetime, silent_s)
    return Attempt(
        number=number,
        first_step=own.first_step,
        lost_from_step=own.lost_from_step,
        started_at=lifetime.started_at,
        last_event_at=lifetime.last_event_at,
        wall_s=lifetime.wall_s,
        longest_gap_s=lifetime.longest_gap_s,
        ranks=max([len(members), len(lifetime.ranks), *(s.ranks for s in starts.values())]),
        hosts={rank: member.host for rank, member in members.items()}
        | {rank: start.host for rank, start in starts.items() if start.host},
        starts=starts,
        devices=events_by_rank(DeviceFound, tables, number),
        steps=own.steps,
        is_lost=own.is_lost,
        evaluations=evaluations,
        lost_evaluations=lost_evaluations,
        saves=events_of(CheckpointSaved, saved, rows_of_lowest(saved, number)),
        incidents=list(dict.fromkeys(events_of_attempt(Incident, tables, number))),
        ends=ends,
        state=state,
        reason=reason,
    )


def _ends(tables: RunTables, number: int) -> list[End]:
    table = tables[AttemptEnded]
    rows = np.flatnonzero(table["attempt"] == number)
    ends = [
        End(float(table["at"][row]), int(table["rank"][row]), event)
        for row, event in zip(rows, events_of(AttemptEnded, table, rows), strict=True)
    ]
    return sorted(ends, key=lambda end: (end.at, end.rank))


def _evaluations(
    table: Table, number: int, own: OwnSteps
) -> tuple[list[Evaluated], list[Evaluated]]:
    """All, and those that are lost: their steps were done again, by a later attempt or by this one
    after it went back."""
    rows = rows_of_lowest(table, number)
    evaluations = events_of(Evaluated, table, rows)
    least_from_here = np.minimum.accumulate(own.steps["step"][::-1])[::-1]
    after = np.searchsorted(own.steps["at"], table["at"][rows], side="right")
    return evaluations, [
        evaluation
        for evaluation, later in zip(evaluations, after, strict=True)
        if evaluation.step >= own.lost_from_step
        or (later < len(least_from_here) and least_from_here[later] <= evaluation.step)
    ]
