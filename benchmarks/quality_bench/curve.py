"""Turns what a candidate has recorded into BLEU by training minute. Pure.

Training time is the sum of the steps, in the seconds of the candidate's own turns: the start,
evaluations and whatever else happens between two steps are counted apart.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from train_bench.measurement import Usage

from quality_bench.turns import TurnClock

LEVELS = (30.0, 35.0, 36.0, 37.0, 38.0)
"""Validation BLEU whose minutes are compared."""


class Step(NamedTuple):
    """Begin and end on the machine's monotonic clock."""

    begin: float
    end: float
    tokens: int
    """Target tokens without padding, end pieces included."""


class Evaluation(NamedTuple):
    begin: float
    end: float
    step: int
    bleu: float


class Record(NamedTuple):
    steps: Sequence[Step]
    evaluations: Sequence[Evaluation]


class Point(NamedTuple):
    step: int
    minutes: float
    """Of training before this evaluation."""
    cpu_minutes: float
    """Of all processors, in those minutes."""
    bleu: float


class Spent(NamedTuple):
    """Minutes of a candidate's turns, and of all processors in them."""

    training: float
    evaluation: float
    other: float
    """The start, saving, and what else is neither a step nor an evaluation."""
    training_cpu: float
    evaluation_cpu: float
    other_cpu: float
    steps: int
    tokens: int


class Limits(NamedTuple):
    """When the plain loop, which has no last step, is asked to end."""

    bleu: float
    minutes: float
    patience_minutes: float


def curve_of(record: Record, clock: TurnClock, usage: Sequence[Usage]) -> list[Point]:
    """Returns a point for each evaluation."""
    ends = [step.end for step in record.steps]
    minutes = np.cumsum([0.0, *_minutes(record.steps, clock)])
    cpu_minutes = np.cumsum([0.0, *_cpu_minutes(record.steps, usage)])
    points = []
    for evaluation in record.evaluations:
        # Half of the evaluation is a margin: both instants are rounded, by different clocks.
        middle = (evaluation.begin + evaluation.end) / 2
        before = int(np.searchsorted(ends, middle))
        points.append(
            Point(
                evaluation.step, float(minutes[before]), float(cpu_minutes[before]), evaluation.bleu
            )
        )
    return points


def spent_by(record: Record, clock: TurnClock, usage: Sequence[Usage]) -> Spent:
    training = float(_minutes(record.steps, clock).sum())
    evaluation = float(_minutes(record.evaluations, clock).sum())
    training_cpu = float(_cpu_minutes(record.steps, usage).sum())
    evaluation_cpu = float(_cpu_minutes(record.evaluations, usage).sum())
    all_cpu = usage[-1].cpu_s / 60 if usage else 0.0
    return Spent(
        training,
        evaluation,
        clock.total_s / 60 - training - evaluation,
        training_cpu,
        evaluation_cpu,
        all_cpu - training_cpu - evaluation_cpu,
        len(record.steps),
        sum(step.tokens for step in record.steps),
    )


def minutes_to(level: float, points: Sequence[Point]) -> float | None:
    """Returns when BLEU first reached a level, on the line between two evaluations.

    The first evaluation has none before it: a level that it has reached counts as reached then.
    None: not reached.
    """
    before: Point | None = None
    for point in points:
        if point.bleu >= level:
            if before is None:
                return point.minutes
            share = (level - before.bleu) / (point.bleu - before.bleu)
            return before.minutes + share * (point.minutes - before.minutes)
        before = point
    return None


def reason_to_end(points: Sequence[Point], minutes: float, limits: Limits) -> str:
    """Returns why a loop should end after so many minutes of training; empty: it goes on."""
    best = max(points, key=lambda point: point.bleu, default=None)
    if best and best.bleu >= limits.bleu:
        return f"it reached {limits.bleu:g} BLEU on validation"
    if minutes >= limits.minutes:
        return f"its {limits.minutes:g} minutes were over"
    if best and minutes - best.minutes >= limits.patience_minutes:
        return f"{limits.patience_minutes:g} minutes brought no new best"
    return ""


def _minutes(spans: Sequence[Step] | Sequence[Evaluation], clock: TurnClock) -> np.ndarray:
    begins, ends = _instants(spans)
    return (clock.seconds(ends) - clock.seconds(begins)) / 60


def _cpu_minutes(
    spans: Sequence[Step] | Sequence[Evaluation], usage: Sequence[Usage]
) -> np.ndarray:
    begins, ends = _instants(spans)
    if not usage:
        return np.zeros(len(spans))
    at, cpu_s = [sample.at for sample in usage], [sample.cpu_s for sample in usage]
    return (np.interp(ends, at, cpu_s) - np.interp(begins, at, cpu_s)) / 60


def _instants(spans: Sequence[Step] | Sequence[Evaluation]) -> np.ndarray:
    return np.array([(span.begin, span.end) for span in spans]).reshape(-1, 2).T
