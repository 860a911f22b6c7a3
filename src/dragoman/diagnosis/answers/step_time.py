"""How long did an average step take, and why were some slower?"""

from collections.abc import Mapping

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import is_hang
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS
from dragoman.diagnosis.speed.series import mean_of
from dragoman.telemetry.read.tables import Array

SLOW_OVER_MEDIAN = 1.5
"""A step is slow that takes longer than so many times the median."""
MUCH_TIME = 0.02
"""Of all time: what slow steps took beyond the median is worth doing something about."""

_CAUSE_OF_PART = {
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
_ADVICE = {
    "checkpoint": advice.SAVE_LESS_OFTEN,
    "data": "The data comes in bursts: see what the processes that read it wait for.",
    "straggler": "See which host the others wait for.",
    "network": "See what the answer about the network says.",
}


def answer(run: RunFacts) -> Finding:
    steps = run.steps
    if not len(steps):
        return unknown("no step has been recorded")
    step_s = steps["step_s"]
    total_s = float(step_s.sum())
    mean = mean_of(step_s)
    median, p95, p99 = (float(value) for value in np.percentile(step_s, [50, 95, 99]))
    slowest = int(step_s.argmax())
    slow = slow_steps(run)
    lost_s = {cause: float((step_s[rows] - median).sum()) for cause, rows in slow.items()}
    tokens_per_s = float(steps["tokens"].sum()) / (total_s or 1.0)
    worst = next(iter(slow), "")
    mean_words, median_words, p95_words = map(in_three_digits, (mean.value, median, p95))
    return Finding(
        verdict=mean_words,
        confidence="high" if len(steps) >= FEW_STEPS else "medium" if len(steps) > 1 else "low",
        sentence=(
            f"The mean of {count(len(steps), 'step')} is {mean_words}, the median {median_words}, "
            f"and 95 of 100 steps took at most {p95_words}: {tokens_per_s:,.0f} target tokens a "
            f"second. {_slow_in_words(slow, len(steps))}"
        ),
        evidence=[
            mean.figure("mean", "s"),
            Figure("median", median, "s"),
            Figure("95th percentile", p95, "s"),
            Figure("99th percentile", p99, "s"),
            Figure("slowest", float(step_s[slowest]), "s", note=f"step {steps['step'][slowest]:,}"),
            Figure("steps", len(steps), "steps"),
            Figure("target tokens a second", tokens_per_s, "tokens"),
            *(
                Figure(f"slow steps: {cause}", len(rows), "steps", note=_beyond(lost_s[cause]))
                for cause, rows in slow.items()
            ),
        ],
        advice=_ADVICE.get(worst, "") if lost_s.get(worst, 0.0) > MUCH_TIME * total_s else "",
    )


def in_three_digits(number: float) -> str:
    """1.80 s, 31.0 s, 943 ms."""
    if number < 0.9995:
        return f"{1000 * number:.3g} ms"
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{digits}f} s"


def slow_steps(run: RunFacts) -> dict[str, Array]:
    """Returns the rows of the slow steps by their cause, the cause that cost most first."""
    step_s, numbers = run.steps["step_s"], run.steps["step"]
    median = float(np.median(step_s))
    slow = np.flatnonzero(step_s > SLOW_OVER_MEDIAN * median)
    causes = np.full(len(slow), "not known", dtype=object)
    timed = run.step_parts.step
    is_timed = np.isin(numbers[slow], timed)
    causes[is_timed] = causes_of(run)[np.searchsorted(timed, numbers[slow][is_timed])]
    found = {cause: slow[causes == cause] for cause in set(causes.tolist())}
    in_order = sorted(found.items(), key=lambda item: -float((step_s[item[1]] - median).sum()))
    return dict(in_order)


def causes_of(run: RunFacts) -> Array:
    """Returns why each step that all ranks have recorded was slower than the median, if it was:
    the part of it that took most beyond its own median."""
    steps = run.step_parts
    if not len(steps):
        return np.empty(0, dtype=object)
    parts = np.nan_to_num(np.stack([steps[part] for part in _CAUSE_OF_PART]))
    largest = np.argmax(parts - np.median(parts, axis=1, keepdims=True), axis=0)
    causes: Array = np.array([*_CAUSE_OF_PART.values()], dtype=object)[largest]
    is_after_evaluation = np.isin(steps.step - 1, [e.step for e in run.evaluations])
    causes[is_after_evaluation & np.isin(causes, ["computing", "rest of the step"])] = "evaluation"
    causes[is_hang(steps["step_s"])] = "hang"
    causes[steps.is_first] = "first step"
    return causes


def _beyond(lost_s: float) -> str:
    return f"{seconds(max(0.0, lost_s))} beyond the median, all together"


def _slow_in_words(slow: Mapping[str, Array], steps: int) -> str:
    if not slow:
        return f"No step took more than {SLOW_OVER_MEDIAN:g} times the median."
    reasons = [f"{len(rows):,} {_WORDS[cause]}" for cause, rows in slow.items()]
    if len(slow) == 1:
        reasons = [_WORDS[cause] for cause in slow]
    number = sum(len(rows) for rows in slow.values())
    return (
        f"{number:,} of {count(steps, 'step')} took more than {SLOW_OVER_MEDIAN:g} times the "
        f"median: {listed(reasons)}."
    )
