"""The timeline of a run: its attempts in order, and which of their steps and evaluations count.

A resumed run goes on from its last checkpoint. Whatever an earlier attempt did after that step is
not part of the model: it is lost, its time was spent, and a later attempt replaces it. An attempt
may also roll back by itself, when it diverges: then its file has the same steps twice, and the
later ones count.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
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
    by_attempt = _rows_of_steps(done)
    lifetimes = lifetimes_of(tables)
    numbers = sorted(lifetimes)
    starts = {number: last_event_by_rank(AttemptStarted, tables, number) for number in numbers}
    first_steps = _first_steps(numbers, starts, by_attempt, done)
    silent_s = 0.0
    if numbers:
        # status.json may be newer than the events that have reached the disk.
        alive_at = max(lifetimes[numbers[-1]].last_event_at, record.heartbeat_at or 0.0)
        silent_s = max(0.0, record.read_at - alive_at)

    attempts: list[Attempt] = []
    counting: list[Array] = []
    rows_by_rank: dict[int, list[Array]] = defaultdict(list)
    lost_from_step = math.inf
    for number in reversed(numbers):
        files = by_attempt.get(number, {})
        not_repeated = {
            rank: rows[done["step"][rows] < least_from(done["step"][rows])[1:]]
            for rank, rows in files.items()
        }
        kept = {
            rank: rows[done["step"][rows] < lost_from_step] for rank, rows in not_repeated.items()
        }
        own = _recorded_by_the_lowest(files, not_repeated, done)
        counts = np.isin(own, np.concatenate([own[:0], *kept.values()]))
        attempts.append(
            attempt_of(
                record,
                number,
                lifetimes[number],
                starts[number],
                OwnSteps(first_steps[number], lost_from_step, done.where(own), ~counts),
                silent_s if number == numbers[-1] else math.inf,
            )
        )
        counting.append(own[counts])
        for rank, rows in kept.items():
            rows_by_rank[rank].append(rows)
        lost_from_step = min(lost_from_step, first_steps[number])
    attempts.reverse()
    together = np.concatenate([np.empty(0, dtype=np.int64), *reversed(counting)])
    in_order = together[np.argsort(done["step"][together], kind="stable")]
    # Where a step was evaluated twice, the later evaluation counts.
    evaluations = {e.step: e for attempt in attempts for e in attempt.evaluations}
    return RunTimeline(
        attempts=attempts,
        steps=done.where(in_order),
        rows_by_rank={
            rank: np.concatenate(rows[::-1]) for rank, rows in sorted(rows_by_rank.items())
        },
        evaluations=[evaluations[step] for step in sorted(evaluations)],
        silent_s=silent_s,
    )


def _rows_of_steps(done: Table) -> dict[int, dict[int, Array]]:
    """Attempt -> rank -> numbers of rows, as they were written."""
    found: dict[int, dict[int, Array]] = defaultdict(dict)
    for (attempt, rank), rows in slices_by_file(done).items():
        found[attempt][rank] = np.arange(rows.start, rows.stop)
    return found


def _recorded_by_the_lowest(
    files: Mapping[int, Array], not_repeated: Mapping[int, Array], done: Table
) -> Array:
    """Rows of the lowest rank that has any; what its file lacks, torn or lost, from the others."""
    ranks = sorted(files)
    own = files[ranks[0]] if ranks else np.empty(0, dtype=np.int64)
    for rank in ranks[1:]:
        rows = not_repeated[rank]
        missing = rows[~np.isin(done["step"][rows], done["step"][own])]
        if len(missing):
            own = np.concatenate([own, missing])
            own = own[np.argsort(done["at"][own], kind="stable")]
    return own


def _first_steps(
    numbers: Sequence[int],
    starts: Mapping[int, Mapping[int, AttemptStarted]],
    by_attempt: Mapping[int, Mapping[int, Array]],
    done: Table,
) -> dict[int, int]:
    """As the attempt recorded it at its start; else its first recorded step; else the next one."""
    found = {}
    last_done = 0
    for number in numbers:
        rows = by_attempt.get(number, {}).values()
        if starts[number]:
            found[number] = starts[number][min(starts[number])].first_step
        else:
            found[number] = min((int(done["step"][r].min()) for r in rows), default=last_done + 1)
        last_done = max((int(done["step"][r[-1]]) for r in rows), default=last_done)
    return found
