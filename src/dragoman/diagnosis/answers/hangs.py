"""Did the run stand still, when, and for how long?

A run that trains, evaluates or saves leaves a sign of it at least every few steps. Where there is
none for much longer than a step takes, it hung; its sensors may well have gone on.
"""

import math
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import count, listed, wall_time
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.steps import HANG_OVER_MEDIAN, HANG_S, Anatomy
from dragoman.diagnosis.run.timeline import History
from dragoman.telemetry.events import CheckpointSaved, Evaluated
from dragoman.telemetry.read.tables import Array, RunTables

KEY = "hangs"
QUESTION = "Did the run hang?"

MOST_NAMED = 3
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


def finding(record: RunRecord, history: History) -> Finding | None:
    """None: it never did."""
    silences = silences_in(record, history)
    if not silences:
        return None
    total_s = math.fsum(silence.seconds for silence in silences)
    hangs_now = silences[-1].is_last and history.attempts[-1].state == "training"
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict="hangs now" if hangs_now else count(len(silences), "time"),
        confidence="high",
        sentence=_sentence(silences, total_s, history, hangs_now),
        evidence=[
            Figure("stood still", total_s, "s"),
            *(
                Figure(
                    f"after step {silence.step:,}",
                    silence.seconds,
                    "s",
                    note=f"attempt {silence.attempt}",
                )
                for silence in silences
            ),
        ],
        advice=(
            "Stop it and give the same command again: it goes on from its last checkpoint."
            if hangs_now
            else ""
        ),
    )


def silences_in(record: RunRecord, history: History) -> list[Silence]:
    return [
        silence._replace(waited_for=_waited_for(silence, history.anatomy))
        for attempt in history.attempts
        for silence in silences_of(attempt, record.tables, _until(history, attempt))
    ]


def _waited_for(silence: Silence, anatomy: Anatomy) -> str:
    is_it = (anatomy.attempt == silence.attempt) & (anatomy.step == silence.step + 1)
    if not silence.is_step or not is_it.any():
        return ""
    split = anatomy.mean(is_it)._asdict()
    longest = max(_WAITS, key=lambda part: np.nan_to_num(split[part]))
    return _WAITS[longest] if split[longest] > split["step_s"] / 2 else ""


def _until(history: History, attempt: Attempt) -> float:
    """What goes on now is silent up to the moment of reading."""
    is_running = attempt is history.attempts[-1] and attempt.state == "training"
    return attempt.ended_at + (history.silent_s if is_running else 0.0)


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


def _named(silence: Silence) -> str:
    why = f" (waiting for {silence.waited_for})" if silence.waited_for else ""
    return f"{wall_time(silence.seconds)} after step {silence.step:,}{why}"


def _sentence(silences: list[Silence], total_s: float, history: History, hangs_now: bool) -> str:
    longest = sorted(silences, key=lambda silence: -silence.seconds)[:MOST_NAMED]
    named = [_named(silence) for silence in longest]
    more = f" and {len(silences) - MOST_NAMED} more times" if len(silences) > MOST_NAMED else ""
    if hangs_now:
        last = silences[-1]
        return (
            f"No step, evaluation or save has come since step {last.step:,}, "
            f"{wall_time(last.seconds)} ago, though the run has not ended."
        )
    sentence = f"Nothing went on for {wall_time(total_s)}: {listed(named)}{more}."
    if len(silences) == 1:
        sentence = f"Nothing went on for {named[0]}."
    ended = {silence.attempt for silence in silences if silence.is_last}
    reasons = [
        f"Attempt {attempt.number} then ended: {attempt.reason.splitlines()[0].rstrip('.')}."
        for attempt in history.attempts
        if attempt.number in ended and attempt.reason
    ]
    return " ".join([sentence, *reasons])
