"""What happened, in order: the record of a run comes in, and which of its events count goes out.

A resumed run goes on from its last checkpoint. Whatever an earlier attempt did after that step is
not part of the model: it is lost, its time was spent, and a later attempt takes its place. An
attempt may also go back by itself, when numbers went wrong: then its file has the same steps twice,
and the later ones count.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt, OwnSteps, attempt_of
from dragoman.diagnosis.run.lifetimes import lifetimes_of, silence_s
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.steps import StepParts, step_parts_of
from dragoman.telemetry.events import AttemptStarted, Evaluated, StepDone
from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.rows import events_by_rank, files_of, taken
from dragoman.telemetry.read.tables import Table


@dataclass(frozen=True)
class RunTimeline:
    attempts: list[Attempt]
    """In order of their numbers."""
    steps: Table
    """That the model is made of, as the lowest rank of each attempt saw them, each once."""
    evaluations: list[Evaluated]
    """Of these steps, each once."""
    silent_s: float
    """Between the last sign of life and the reading."""
    _done: Table
    _rows_by_rank: dict[int, Array]

    @cached_property
    def steps_by_rank(self) -> dict[int, Table]:
        """Rank -> the same steps as that rank saw them, as far as it has recorded them."""
        return {rank: taken(self._done, rows) for rank, rows in self._rows_by_rank.items()}

    @cached_property
    def step_parts(self) -> StepParts:
        """The parts of these steps over all ranks."""
        return step_parts_of(self.attempts, self.steps_by_rank)

    @property
    def wall_s(self) -> float:
        return math.fsum(attempt.wall_s for attempt in self.attempts)


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
    starts = {number: events_by_rank(AttemptStarted, tables, number) for number in numbers}
    first_steps = _first_steps(numbers, starts, by_attempt, done)
    silent_s = 0.0
    if numbers:
        silent_s = silence_s(lifetimes[numbers[-1]], record.heartbeat_at, record.read_at)

    attempts: list[Attempt] = []
    counting: list[Array] = []
    rows_by_rank: dict[int, list[Array]] = defaultdict(list)
    lost_from_step = math.inf
    for number in reversed(numbers):
        files = by_attempt.get(number, {})
        still = {rank: rows[_not_repeated(done["step"][rows])] for rank, rows in files.items()}
        kept = {rank: rows[done["step"][rows] < lost_from_step] for rank, rows in still.items()}
        own = _seen_by_the_lowest(files, still, done)
        counts = np.isin(own, np.concatenate([own[:0], *kept.values()]))
        attempts.append(
            attempt_of(
                record,
                number,
                lifetimes[number],
                starts[number],
                OwnSteps(first_steps[number], lost_from_step, taken(done, own), ~counts),
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
    return RunTimeline(
        attempts=attempts,
        steps=taken(done, in_order),
        evaluations=_counting_evaluations(attempts),
        silent_s=silent_s,
        _done=done,
        _rows_by_rank={
            rank: np.concatenate(rows[::-1]) for rank, rows in sorted(rows_by_rank.items())
        },
    )


def _rows_of_steps(done: Table) -> dict[int, dict[int, Array]]:
    """Attempt -> rank -> numbers of rows, as they were written."""
    found: dict[int, dict[int, Array]] = defaultdict(dict)
    for (attempt, rank), rows in files_of(done).items():
        found[attempt][rank] = np.arange(rows.start, rows.stop)
    return found


def _not_repeated(steps: Array) -> Array:
    """Of the steps of one file: those that it has not gone back behind later."""
    least_from_here = np.minimum.accumulate(steps[::-1])[::-1]
    least_after = np.append(least_from_here[1:], np.iinfo(np.int64).max)
    return np.asarray(steps < least_after)


def _seen_by_the_lowest(
    files: Mapping[int, Array], still: Mapping[int, Array], done: Table
) -> Array:
    """Rows of the lowest rank that has any; what its file lacks, torn or lost, from the others."""
    ranks = sorted(files)
    own = files[ranks[0]] if ranks else np.empty(0, dtype=np.int64)
    for rank in ranks[1:]:
        missing = still[rank][~np.isin(done["step"][still[rank]], done["step"][own])]
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
    """As the attempt said at its start; else the first that was seen; else it did none."""
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


def _counting_evaluations(attempts: Sequence[Attempt]) -> list[Evaluated]:
    """Where a step was looked at twice, the later look counts."""
    found: dict[int, Evaluated] = {}
    for attempt in attempts:
        lost = {id(evaluation) for evaluation in attempt.lost_evaluations}
        found |= {e.step: e for e in attempt.evaluations if id(e) not in lost}
    return [found[step] for step in sorted(found)]
