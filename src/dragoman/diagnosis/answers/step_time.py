"""How long did an average step take, and why were some slower?"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.findings import Confidence, Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepParts, is_hang
from dragoman.diagnosis.speed.statistics import mean_of
from dragoman.telemetry.read.columns import Array

KEY = "step-time"
QUESTION = "How long did an average step take?"

SLOW_OVER_MEDIAN = 1.5
"""A step is slow that takes longer than so many times the median."""
FEW_STEPS = 20
MANY_SLOW = 0.02
"""Of all time: what slow steps took beyond the median is worth doing something about."""


class Causes(NamedTuple):
    """Of the steps that all ranks have recorded, in order."""

    step: Array
    cause: Array
    """One of the words below."""


_CAUSES = {
    "data_s": "data",
    "compute_s": "computing",
    "network_s": "network",
    "straggling_s": "straggler",
    "checkpoint_s": "checkpoint",
    "rest_s": "rest of the step",
}
_WORDS = {
    "first step": "the first of an attempt",
    "checkpoint": "waiting for a checkpoint's copy",
    "evaluation": "right after an evaluation",
    "straggler": "waiting for a slow rank",
    "network": "waiting for the network",
    "data": "waiting for data",
    "computing": "computing longer",
    "rest of the step": "something outside of the parts that are timed",
    "hang": "hanging",
    "not known": "for reasons that not all ranks have recorded",
}
SAVE_LESS_OFTEN = (
    "Saving holds up the steps behind it: save less often (checkpoints.every_steps, or a larger "
    "checkpoints.lost_minutes)."
)
_ADVICE = {
    "checkpoint": SAVE_LESS_OFTEN,
    "data": "The data comes in bursts: see what the processes that read it wait for.",
    "straggler": "See which host the others wait for.",
    "network": "See what the answer about the network says.",
}


def answer(run: RunFacts) -> Finding:
    steps = run.steps
    if not len(steps):
        return unknown(KEY, QUESTION, "no step has been recorded")
    step_s = steps["step_s"]
    mean = mean_of(step_s)
    median, p95, p99 = (float(value) for value in np.percentile(step_s, [50, 95, 99]))
    slowest = int(step_s.argmax())
    causes = slow_steps(step_s, steps["step"], causes_of(run))
    lost_s = {cause: float((step_s[own] - median).sum()) for cause, own in causes.items()}
    tokens_per_s = float(steps["tokens"].sum()) / (float(step_s.sum()) or 1.0)
    figures = [
        Figure("mean", mean.value, "s", mean.low, mean.high),
        Figure("median", median, "s"),
        Figure("95th percentile", p95, "s"),
        Figure("99th percentile", p99, "s"),
        Figure("slowest", float(step_s[slowest]), "s", note=f"step {steps['step'][slowest]:,}"),
        Figure("steps", len(steps), "steps"),
        Figure("target tokens a second", tokens_per_s, "tokens"),
    ]
    for cause, own in causes.items():
        note = f"{seconds(max(0.0, lost_s[cause]))} beyond the median, all together"
        figures.append(Figure(f"slow steps: {cause}", len(own), "steps", note=note))
    worst = next(iter(causes), "")
    is_much = bool(worst) and lost_s[worst] > MANY_SLOW * float(step_s.sum())
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=in_three_digits(mean.value),
        confidence=_confidence(len(steps)),
        sentence=_sentence(mean.value, median, p95, causes, len(steps), tokens_per_s),
        evidence=figures,
        advice=_ADVICE.get(worst, "") if is_much else "",
    )


def in_three_digits(number: float) -> str:
    """1.80 s, 31.0 s, 943 ms."""
    if number < 0.9995:
        return f"{1000 * number:.3g} ms"
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{digits}f} s"


def causes_of(run: RunFacts) -> Causes:
    """Why each step was slower than the median, as far as it was."""
    anatomy = run.step_parts
    causes = np.array([*_CAUSES.values()], dtype=object)[_largest_excess(anatomy)]
    evaluated = np.array([e.step for e in run.evaluations], dtype=np.int64)
    is_after = np.isin(anatomy.step - 1, evaluated)
    causes[is_after & np.isin(causes, ["computing", "rest of the step"])] = "evaluation"
    causes[is_hang(anatomy["step_s"])] = "hang"
    causes[anatomy.is_first] = "first step"
    return Causes(anatomy.step, causes)


def _largest_excess(anatomy: StepParts) -> Array:
    """Of each step: the place in `_CAUSES` of the part that took most beyond its own median."""
    parts = np.nan_to_num(np.stack([anatomy[part] for part in _CAUSES]))
    if not len(anatomy):
        return np.empty(0, dtype=np.int64)
    largest: Array = np.argmax(parts - np.median(parts, axis=1, keepdims=True), axis=0)
    return largest


def slow_steps(step_s: Array, numbers: Array, causes: Causes) -> dict[str, Array]:
    """Cause -> places of the slow steps with it, the cause that cost most first."""
    median = float(np.median(step_s))
    slow = np.flatnonzero(step_s > SLOW_OVER_MEDIAN * median)
    own = np.full(len(slow), "not known", dtype=object)
    known = np.isin(numbers[slow], causes.step)
    own[known] = causes.cause[np.searchsorted(causes.step, numbers[slow][known])]
    found = {cause: slow[own == cause] for cause in set(own.tolist())}
    in_order = sorted(found.items(), key=lambda item: -float((step_s[item[1]] - median).sum()))
    return dict(in_order)


def _confidence(steps: int) -> Confidence:
    return "high" if steps >= FEW_STEPS else "medium" if steps > 1 else "low"


def _sentence(
    mean: float,
    median: float,
    p95: float,
    causes: Mapping[str, Array],
    steps: int,
    tokens_per_s: float,
) -> str:
    sentence = (
        f"The mean of {count(steps, 'step')} is {in_three_digits(mean)}, the median "
        f"{in_three_digits(median)}, and 95 of 100 steps took at most {in_three_digits(p95)}: "
        f"{tokens_per_s:,.0f} target tokens a second."
    )
    slow = sum(len(places) for places in causes.values())
    if not slow:
        return f"{sentence} No step took more than {SLOW_OVER_MEDIAN:g} times the median."
    whys = [f"{len(places):,} {_WORDS[cause]}" for cause, places in causes.items()]
    if len(causes) == 1:
        whys = [_WORDS[cause] for cause in causes]
    return (
        f"{sentence} {slow:,} of {count(steps, 'step')} took more than "
        f"{SLOW_OVER_MEDIAN:g} times the median: {listed(whys)}."
    )
