"""When a run did nothing: no step, evaluation or save for much longer than a step takes."""

from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.steps import HANG_OVER_MEDIAN, HANG_S, StepParts
from dragoman.diagnosis.run.timeline import RunTimeline
from dragoman.telemetry.events import CheckpointSaved, Evaluated
from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.tables import RunTables

_WAITS = {
    "data_s": "data",
    "network_s": "the network",
    "straggling_s": "a slow rank",
    "checkpoint_s": "a checkpoint's copy",
}


class Silence(NamedTuple):
    attempt: int
    step: int
    """The last that was done before it."""
    seconds: float
    is_last: bool
    """Nothing was done any more after it in this attempt."""
    is_step: bool
    """It was a step that took so long, and ended."""
    waited_for: str = ""
    """In that step, as far as its ranks have recorded it."""


def silences_in(record: RunRecord, timeline: RunTimeline) -> list[Silence]:
    return [
        silence._replace(waited_for=_waited_for(silence, timeline.step_parts))
        for attempt in timeline.attempts
        for silence in silences_of(attempt, record.tables, _until(timeline, attempt))
    ]


def _waited_for(silence: Silence, anatomy: StepParts) -> str:
    is_it = (anatomy.attempt == silence.attempt) & (anatomy.step == silence.step + 1)
    if not silence.is_step or not is_it.any():
        return ""
    split = anatomy.mean(is_it)._asdict()
    longest = max(_WAITS, key=lambda part: np.nan_to_num(split[part]))
    return _WAITS[longest] if split[longest] > split["step_s"] / 2 else ""


def _until(timeline: RunTimeline, attempt: Attempt) -> float:
    """What goes on now is silent up to the moment of reading."""
    is_running = attempt is timeline.attempts[-1] and attempt.state == "training"
    return attempt.ended_at + (timeline.silent_s if is_running else 0.0)


def silences_of(attempt: Attempt, tables: RunTables, until: float) -> list[Silence]:
    steps = attempt.steps
    if not len(steps):
        return []
    longest_s = max(HANG_S, HANG_OVER_MEDIAN * float(np.median(steps["step_s"])))
    begins = [steps["at"] - steps["step_s"]]
    ends = [steps["at"]]
    for kind in (Evaluated, CheckpointSaved):
        table = tables[kind]
        own = table["attempt"] == attempt.number
        begins.append((table["at"] - table["seconds"])[own])
        ends.append(table["at"][own])
    first_at = float(begins[0][0])
    gaps = _gaps(np.concatenate(begins), np.concatenate(ends), first_at, until)
    found = [
        Silence(
            attempt=attempt.number,
            step=_step_at(steps["at"], steps["step"], after),
            seconds=lasted_s,
            is_last=place == len(gaps) - 1,
            is_step=False,
        )
        for place, (after, lasted_s) in enumerate(gaps)
        if lasted_s > longest_s
    ]
    for place in np.flatnonzero(steps["step_s"] > longest_s):
        before, lasted_s = int(steps["step"][place]) - 1, float(steps["step_s"][place])
        found.append(Silence(attempt.number, before, lasted_s, is_last=False, is_step=True))
    return sorted(found, key=lambda silence: silence.step)


def _gaps(begins: Array, ends: Array, first_at: float, until: float) -> list[tuple[float, float]]:
    """(when it begins, how long it lasts) of each gap between spans of work that are longer than
    nothing, the last one to `until`."""
    order = np.argsort(begins, kind="stable")
    covered_to = np.maximum.accumulate(ends[order])
    lasted_s = np.append(begins[order][1:], until) - covered_to
    own = (covered_to >= first_at) & (lasted_s > HANG_S)
    own[-1] = True
    return list(zip(covered_to[own].tolist(), lasted_s[own].tolist(), strict=True))


def _step_at(at: Array, steps: Array, moment: float) -> int:
    place = int(np.searchsorted(at, moment, side="right")) - 1
    return int(steps[max(0, place)])
