"""The timeline of a run: its attempts in order, and which of their steps and evaluations count.

A resumed run goes on from its last checkpoint. Whatever an earlier attempt did after that step is
not part of the model: it is lost, its time was spent, and a later attempt replaces it. An attempt
may also roll back by itself, when it diverges: then its file has the same steps twice, and the
later ones count.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragoman.diagnosis.run.attempts import (
    Attempt,
    OwnSteps,
    attempt_of,
    least_from,
    lifetimes_of,
)
from dragoman.diagnosis.run.record import RunRecord
from dragoman.telemetry.events import AttemptStarted, Evaluated, StepDone
from dragoman.telemetry.read.tables import Array, Table, last_event_by_rank, slices_by_file


@dataclass(frozen=True, eq=False)
class RunTimeline:
    attempts: list[Attempt]
    """In order of their numbers."""
    steps: Table
    """That the model is made of, each once, as the lowest rank of each attempt recorded them."""
    rows_by_rank: dict[int, Array]
    """Rank -> rows of the same steps in the table of all steps, as far as that rank recorded them.
    The rows rather than the steps, since those are most of what a run has recorded."""
    evaluations: list[Evaluated]
    """Of these steps, each once."""
    silent_s: float
    """From the last sign of life to the reading."""


def why_no_common_step(steps: Table) -> str:
    """Where the step parts are empty, for an answer that therefore is none."""
    if len(steps):
        return "there is no step that all ranks have recorded"
    return "no step has been recorded"


def timeline_of(record: RunRecord) -> RunTimeline:
    tables = record.tables
    done = tables[StepDone]
    files: dict[int, list[Array]] = defaultdict(list)  # of each attempt: rows of its ranks
    for (number, _), place in slices_by_file(done).items():
        files[number].append(np.arange(place.start, place.stop))
    lifetimes = dict(sorted(lifetimes_of(tables).items()))
    starts = {number: last_event_by_rank(AttemptStarted, tables, number) for number in lifetimes}
    first_steps = _first_steps(starts, done, files)
    lost_from = {
        number: min((step for n, step in first_steps.items() if n > number), default=math.inf)
        for number in lifetimes
    }
    is_repeated = np.zeros(len(done), dtype=bool)
    counts = np.zeros(len(done), dtype=bool)
    for number in lifetimes:
        for rows in files[number]:
            steps = done["step"][rows]
            is_repeated[rows] = steps >= least_from(steps)[1:]
            counts[rows] = ~is_repeated[rows] & (steps < lost_from[number])
    own_rows = [_own_rows(done, files[number], is_repeated) for number in lifetimes]
    last = max(lifetimes, default=0)
    silent_s = 0.0
    if lifetimes:
        # status.json may be newer than the events that have reached the disk.
        alive_at = max(lifetimes[last].last_event_at, record.heartbeat_at or 0.0)
        silent_s = max(0.0, record.read_at - alive_at)
    attempts = [
        attempt_of(
            record,
            number,
            lifetime,
            starts[number],
            OwnSteps(first_steps[number], lost_from[number], done.where(own), ~counts[own]),
            silent_s if number == last else math.inf,
        )
        for (number, lifetime), own in zip(lifetimes.items(), own_rows, strict=True)
    ]
    counting = np.concatenate([np.empty(0, dtype=np.int64), *own_rows])
    counting = counting[counts[counting]]
    evaluations: dict[int, Evaluated] = {}
    for evaluated in (e for attempt in attempts for e in attempt.evaluations):
        # Where a step was evaluated twice, the later evaluation counts.
        losses = evaluations.get(evaluated.step) if evaluated.arrived_step is not None else None
        waited_s = losses.seconds if losses and losses.bleu is None else 0.0
        evaluations[evaluated.step] = replace(evaluated, seconds=waited_s + evaluated.seconds)
    return RunTimeline(
        attempts=attempts,
        steps=done.where(counting[np.argsort(done["step"][counting], kind="stable")]),
        rows_by_rank={
            rank: np.flatnonzero(counts & (done["rank"] == rank))
            for rank in np.unique(done["rank"]).tolist()
        },
        evaluations=[evaluations[step] for step in sorted(evaluations)],
        silent_s=silent_s,
    )


def _own_rows(done: Table, files: Sequence[Array], is_repeated: Array) -> Array:
    """Returns the steps of an attempt as the lowest rank recorded them; what its file lacks, torn
    or lost, comes from the others."""
    found = files[0] if files else np.empty(0, dtype=np.int64)
    for rows in files[1:]:
        standing = rows[~is_repeated[rows]]
        missing = standing[~np.isin(done["step"][standing], done["step"][found])]
        if len(missing):
            found = np.concatenate([found, missing])
            found = found[np.argsort(done["at"][found], kind="stable")]
    return found


def _first_steps(
    starts: Mapping[int, Mapping[int, AttemptStarted]],
    done: Table,
    files: Mapping[int, Sequence[Array]],
) -> dict[int, int]:
    """As the attempt recorded it at its start; else its first recorded step; else the next one."""
    found = {}
    last_done = 0
    for number, by_rank in starts.items():
        steps = [done["step"][rows] for rows in files[number]]
        recorded = min((int(own.min()) for own in steps), default=last_done + 1)
        found[number] = by_rank[min(by_rank)].first_step if by_rank else recorded
        last_done = max((int(own[-1]) for own in steps), default=last_done)
    return found
