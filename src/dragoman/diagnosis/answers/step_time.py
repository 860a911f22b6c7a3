"""How long did an average step take, and why were some slower?

The mean is that of the usual steps, as in every other answer: the first step of an attempt and
hangs are no example for the others, and are counted by themselves. Where a run went on with more
hosts or fewer, there is a mean for each of these layouts, and none over all of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dragoman.diagnosis.findings import Advice, Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import count, listed, percent, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import is_hang
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS, Shares, shares_of
from dragoman.diagnosis.speed.foreseen import beside_forecast, forecast_figures, foreseen_of
from dragoman.diagnosis.speed.layouts import (
    LayoutPace,
    attempts_by_layout,
    comparison_of,
    layout_name,
    layouts_of,
    longest_layout,
    rows_of,
    why_this_layout,
)
from dragoman.diagnosis.speed.series import mean_of
from dragoman.telemetry.read.tables import Array

SLOW_OVER_MEDIAN = 1.5
"""A step is slow that takes longer than so many times the median of its layout."""
MUCH_TIME = 0.02
"""Of all time: what slow steps took beyond the median is worth doing something about."""
WORTH_NAMING = 0.01
"""Relative: so much the first steps and hangs must add to the mean, to be named."""

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


def answer(run: RunFacts) -> Finding:
    steps = run.steps
    if not len(steps):
        return unknown("no step has been recorded")
    layouts = layouts_of(run)
    if not layouts:
        return unknown(why_no_common_step(steps))
    layout = longest_layout(layouts)
    usual_s = run.step_parts["step_s"][run.step_parts.usual]
    step_s = run.step_parts["step_s"][rows_of(run, layout)]
    median, p95, p99 = (float(value) for value in np.percentile(step_s, [50, 95, 99]))
    all_s, slow = steps["step_s"], slow_steps(run)
    slowest = int(all_s.argmax())
    beyond_s = _beyond_median_s(run)
    lost_s = {cause: float(beyond_s[rows].sum()) for cause, rows in slow.items()}
    foreseen = foreseen_of(run)
    return Finding(
        verdict=in_three_digits(layout.split.step_s),
        confidence="high" if len(steps) >= FEW_STEPS else "medium" if len(steps) > 1 else "low",
        sentence=" ".join(
            sentence
            for sentence in (
                _mean_in_words(layout, layouts, median, p95),
                _with_first_steps_in_words(all_s, layout, layouts),
                comparison_of(layouts, run.config.cost),
                beside_forecast(foreseen),
                _slow_in_words(slow, len(steps)),
            )
            if sentence
        ),
        evidence=[
            *_mean_figures(layouts, mean_of(usual_s).figure("mean step", "s")),
            *forecast_figures(foreseen, {"step_s": "forecast step"}),
            Figure("median", median, "s"),
            Figure("95th percentile", p95, "s"),
            Figure("99th percentile", p99, "s"),
            Figure("mean, first steps and hangs included", float(all_s.mean()), "s"),
            Figure("slowest", float(all_s[slowest]), "s", note=f"step {steps['step'][slowest]:,}"),
            Figure("steps", len(steps), "steps"),
            *recorded(Figure("target tokens a second", layout.tokens_per_s, "tokens")),
            *(
                Figure(f"slow steps: {cause}", len(rows), "steps", note=_beyond(lost_s[cause]))
                for cause, rows in slow.items()
            ),
        ],
        advice=_advice(run, lost_s),
        plain=_plain(layout, layouts),
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
    beyond_s = _beyond_median_s(run)
    slow = np.flatnonzero(step_s > SLOW_OVER_MEDIAN * (step_s - beyond_s))
    causes = np.full(len(slow), "not known", dtype=object)
    timed = run.step_parts.step
    is_timed = np.isin(numbers[slow], timed)
    causes[is_timed] = causes_of(run)[np.searchsorted(timed, numbers[slow][is_timed])]
    found = {cause: slow[causes == cause] for cause in set(causes.tolist())}
    return dict(sorted(found.items(), key=lambda item: -float(beyond_s[item[1]].sum())))


def causes_of(run: RunFacts) -> Array:
    """Returns why each step that all ranks have recorded was slower than the median of its layout,
    if it was: the part of it that took most beyond its own median."""
    steps = run.step_parts
    causes = np.empty(len(steps), dtype=object)
    names = np.array([*_CAUSE_OF_PART.values()], dtype=object)
    parts = [np.nan_to_num(steps[part]) for part in _CAUSE_OF_PART]
    for own in _rows_by_layout(run, steps.attempt):
        own_parts = np.stack([part[own] for part in parts])
        beyond = own_parts - np.median(own_parts, axis=1, keepdims=True)
        causes[own] = names[np.argmax(beyond, axis=0)]
    is_after_evaluation = np.isin(steps.step - 1, [e.step for e in run.evaluations])
    causes[is_after_evaluation & np.isin(causes, ["computing", "rest of the step"])] = "evaluation"
    causes[is_hang(steps["step_s"])] = "hang"
    causes[steps.is_first] = "first step"
    return causes


def _rows_by_layout(run: RunFacts, attempts: Array) -> list[Array]:
    """Returns the rows of each layout, given the attempt of each row."""
    layouts = attempts_by_layout(run.attempts).values()
    found = [np.flatnonzero(np.isin(attempts, [a.number for a in own])) for own in layouts]
    return [rows for rows in found if len(rows)]


def _beyond_median_s(run: RunFacts) -> Array:
    """Returns what each of the run's steps took beyond the median of its layout."""
    step_s = run.steps["step_s"]
    beyond_s = np.empty(len(step_s))
    for rows in _rows_by_layout(run, run.steps["attempt"]):
        beyond_s[rows] = step_s[rows] - np.median(step_s[rows])
    return beyond_s


def _beyond(lost_s: float) -> str:
    return f"{seconds(max(0.0, lost_s))} beyond the median, all together"


def _plain(layout: LayoutPace, layouts: Sequence[LayoutPace]) -> str:
    with_hosts = f" with {layout_name(layout, layouts)}" if len(layouts) > 1 else ""
    took = f"A step took {in_three_digits(layout.split.step_s)} on average{with_hosts}"
    shares = shares_of(layout.split)
    # Where what ranks wait for each other is not known, computing holds some of it.
    is_split = layout.ranks == 1 or not math.isnan(shares.network)
    largest = _largest_part(shares) if is_split else ""
    return f"{took}, and most of that went to {largest}." if largest else f"{took}."


def _largest_part(shares: Shares) -> str:
    """Returns what more than half of a step goes to; empty: nothing takes so much."""
    named = {
        "computing": shares.compute,
        "waiting for the network": shares.network,
        "waiting for the slowest worker": shares.straggling,
        "waiting for data": shares.data,
    }
    return next((what for what, share in named.items() if share > 0.5), "")


def _mean_in_words(
    layout: LayoutPace, layouts: Sequence[LayoutPace], median: float, p95: float
) -> str:
    where = ""
    if len(layouts) > 1:
        why = why_this_layout(layout, layouts)
        where = f" with {layout_name(layout, layouts)}, {why},"
    mean, middle, most = map(in_three_digits, (layout.split.step_s, median, p95))
    pace = f"{layout.tokens_per_s:,.0f} target tokens a second"
    words = f"The mean of {count(layout.steps, 'step')}{where} is {mean}"
    if layout.steps < FEW_STEPS:
        return f"{words}: {pace}."
    return f"{words}, the median {middle}, and 95 of 100 took at most {most}: {pace}."


def _with_first_steps_in_words(
    all_s: Array, layout: LayoutPace, layouts: Sequence[LayoutPace]
) -> str:
    with_all = float(all_s.mean())
    if len(layouts) > 1 or with_all < (1 + WORTH_NAMING) * layout.split.step_s:
        return ""
    return (
        f"That leaves out the first step of each attempt and hangs, with which the mean is "
        f"{in_three_digits(with_all)}."
    )


def _slow_in_words(slow: Mapping[str, Array], steps: int) -> str:
    if not slow:
        return f"No step took more than {SLOW_OVER_MEDIAN:g} times the median."
    reasons = [f"{len(rows):,} {_WORDS[cause]}" for cause, rows in slow.items()]
    if len(slow) == 1:
        reasons = [_WORDS[cause] for cause in slow]
    number = sum(len(rows) for rows in slow.values())
    share = f" ({percent(number / steps)})" if number > 1 else ""
    return (
        f"{number:,} of {count(steps, 'step')}{share} took more than {SLOW_OVER_MEDIAN:g} times "
        f"the median: {listed(reasons)}."
    )


def _mean_figures(layouts: Sequence[LayoutPace], mean: Figure) -> list[Figure]:
    if len(layouts) == 1:
        return [mean]
    return [
        replace(mean, note="over all attempts, whatever their hosts"),
        *(
            Figure(
                f"mean step with {layout_name(layout, layouts)}",
                layout.split.step_s,
                "s",
                note=f"{layout.steps:,} steps, {layout.tokens_per_s:,.0f} target tokens a second",
            )
            for layout in layouts
        ),
    ]


def _advice(run: RunFacts, lost_s: Mapping[str, float]) -> list[Advice]:
    """Returns advice on the cause that cost most; on those that the answer about the network names
    there is none here."""
    worst = next(iter(lost_s), "")
    if lost_s.get(worst, 0.0) <= MUCH_TIME * float(run.steps["step_s"].sum()):
        return []
    match worst:
        case "checkpoint":
            return [advice.save_less_often(run)]
        case "data":
            return advice.on_slow_data(run)
    return []
