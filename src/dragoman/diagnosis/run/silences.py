"""Silences of a run: no step, evaluation or save for much longer than a step usually takes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.steps import StepParts, is_hang, longest_usual_s
from dragoman.telemetry.events import CheckpointSaved, Evaluated
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
    """No work followed in this attempt."""
    is_step: bool
    """A step took so long, and ended."""
    waited_for: str = ""
    """During that step, as far as its ranks have recorded it; empty: not known."""


def silences_of(
    attempts: Sequence[Attempt], tables: RunTables, step_parts: StepParts, silent_s: float
) -> list[Silence]:
    """`silent_s`: how long the last attempt, if it goes on, has been silent at the reading."""
    found: list[Silence] = []
    for attempt in attempts:
        until = attempt.ended_at + (silent_s if attempt.state == "training" else 0.0)
        if len(attempt.steps):
            own = [*_between_work(attempt, tables, until), *_within_steps(attempt, step_parts)]
            found += sorted(own, key=lambda silence: silence.step)
    return found


def _between_work(attempt: Attempt, tables: RunTables, until: float) -> Iterator[Silence]:
    steps = attempt.steps
    begins, ends = [steps["at"] - steps["step_s"]], [steps["at"]]
    for kind in (Evaluated, CheckpointSaved):
        table = tables[kind]
        own = table["attempt"] == attempt.number
        begins.append((table["at"] - table["seconds"])[own])
        ends.append(table["at"][own])
    order = np.argsort(np.concatenate(begins), kind="stable")
    covered_to = np.maximum.accumulate(np.concatenate(ends)[order])
    gaps_s = np.append(np.concatenate(begins)[order][1:], until) - covered_to
    # What lies before the first step is starting.
    is_silence = (gaps_s > longest_usual_s(steps["step_s"])) & (covered_to >= begins[0][0])
    for place in np.flatnonzero(is_silence).tolist():
        step = max(0, np.searchsorted(steps["at"], covered_to[place], side="right") - 1)
        is_last = place == len(gaps_s) - 1
        yield Silence(
            attempt.number, int(steps["step"][step]), float(gaps_s[place]), is_last, is_step=False
        )


def _within_steps(attempt: Attempt, step_parts: StepParts) -> Iterator[Silence]:
    steps, step_s = attempt.steps["step"], attempt.steps["step_s"]
    for place in np.flatnonzero(is_hang(step_s)).tolist():
        step = int(steps[place])
        is_it = (step_parts.attempt == attempt.number) & (step_parts.step == step)
        waited_for = ""
        if is_it.any():
            split = step_parts.mean(is_it)._asdict()
            longest = max(_WAITS, key=lambda part: np.nan_to_num(split[part]))
            waited_for = _WAITS[longest] if split[longest] > split["step_s"] / 2 else ""
        lasted_s = float(step_s[place])
        yield Silence(attempt.number, step - 1, lasted_s, False, True, waited_for)
