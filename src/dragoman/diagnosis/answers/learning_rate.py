"""What does the learning-rate plot show? Verdicts: "as set" | "not as set".

The curve as run is compared, step by step, with the curve that follows from the settings. After a
rollback a run goes on with half the rate, on purpose: that is not as set, and nothing to mend.
"""

from dataclasses import dataclass

import numpy as np

from dragoman.config import Config, ScheduleSettings
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.learning.robust_fit import Floats
from dragoman.diagnosis.phrasing import count, percent, scientific
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.training.divergence import RATE_FACTOR
from dragoman.training.schedule import Peak, learning_rate

TOLERANCE = 1e-6
"""Of a rate, as a share of it: both are computed by the same function, and written as text."""


@dataclass(frozen=True)
class RateComparison:
    """Of the rates as run with those that follow from the settings."""

    deviating: int
    """Steps whose rate follows neither from the settings nor from a rollback."""
    first_deviating: int | None
    largest: float
    """Deviation, as a share of the rate as set times the factor of rollbacks."""
    factor: float
    """Of the last step: 1, or a power of RATE_FACTOR after rollbacks."""
    factor_since: int | None


def compare_rates(steps: Floats, rates: Floats, planned: Floats, rollbacks: int) -> RateComparison:
    """`rollbacks`: how many the run has recorded; each may have halved the rate once."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(planned > 0, rates / planned, np.where(rates == planned, 1.0, np.inf))
        halvings = np.round(np.log(ratios) / np.log(RATE_FACTOR))
    # A factor only ever gets smaller; NaN and infinite ratios fit no factor.
    halvings = np.clip(np.where(np.isfinite(halvings), halvings, 0.0), 0.0, rollbacks)
    grows = halvings < np.maximum.accumulate(halvings)
    deviations = np.abs(ratios / RATE_FACTOR**halvings - 1)
    wrong = np.flatnonzero(~(deviations <= TOLERANCE) | grows)
    changed = np.flatnonzero(np.diff(halvings, prepend=0.0))
    return RateComparison(
        deviating=len(wrong),
        first_deviating=int(steps[wrong[0]]) if len(wrong) else None,
        largest=float(deviations[wrong].max(initial=0.0)),
        factor=float(RATE_FACTOR ** halvings[-1]),
        factor_since=int(steps[changed[-1]]) if len(changed) else None,
    )


def answer(run: RunFacts) -> Finding:
    config, schedule = run.config, run.config.schedule
    planned_rate = learning_rate(schedule, config.model.width, config.training.steps)
    peak_step = max(1, schedule.warmup_steps)
    peak = Peak(peak_step, planned_rate(peak_step))
    evidence = _settings(schedule, peak)
    steps, rates = run.steps["step"], run.steps["learning_rate"].astype(float)
    words = f"The plot shows {_schedule_words(config, peak)}."
    if not len(steps):
        why = f"no step has been recorded yet. What is set: {words.removesuffix('.')}"
        return unknown(why, evidence)
    planned = np.fromiter(map(planned_rate, steps.tolist()), dtype=float, count=len(steps))
    rollbacks = sum(i.category == "rollback" for a in run.attempts for i in a.incidents)
    found = compare_rates(steps, rates, planned, rollbacks)
    highest = int(np.nanargmax(rates)) if np.isfinite(rates).any() else 0
    evidence += [
        Figure("highest rate as run", float(rates[highest]), "", note=f"step {steps[highest]:,}"),
        Figure("rate of the last step", float(rates[-1]), "", note=f"step {steps[-1]:,}"),
        Figure("steps that deviate", found.deviating, "steps"),
        Figure("largest deviation", found.largest, "share"),
    ]
    if found.deviating:
        sentence = (
            f"From step {found.first_deviating:,} on, {count(found.deviating, 'step')} had another "
            f"rate than the settings give, by up to {percent(found.largest)}. As set: {words}"
        )
        advice = (
            "Look for what changed between the attempts of this run: config.toml, or the version "
            "of the program."
        )
        return Finding("not as set", "high", sentence, evidence, advice)
    verdict = "as set" if found.factor_since is None else "not as set"
    sentence = (
        f"{words} {_now_words(config, int(steps[-1]), float(rates[-1]))}{_rollback_words(found)} "
        "It follows the step alone and does not react to the loss."
    )
    return Finding(verdict, "high", sentence, evidence)


def _schedule_words(config: Config, peak: Peak) -> str:
    schedule = config.schedule
    final = (
        f"{scientific(schedule.final)} (schedule.final) at step {config.training.steps or 0:,} "
        "(training.steps)"
    )
    root = (
        "falls with the inverse square root of the step: after four times as many steps it is half"
    )
    match schedule.kind:
        case "noam":
            return (
                f"the Noam schedule: {_warmup_words(schedule, peak)}{root}. schedule.scale = "
                f"{schedule.scale:g} is a factor and not a rate: the peak is scale / sqrt(model "
                f"width {config.model.width:,} x {peak.step:,} warm-up steps)"
            )
        case "inverse-square-root":
            return f"an inverse-square-root schedule: {_warmup_words(schedule, peak)}{root}"
        case "cosine":
            fall = f"falls along half a cosine to {final}"
        case "linear":
            fall = f"falls in a straight line to {final}"
        case "constant":
            fall = "stays there"
    return f"a {schedule.kind} schedule: {_warmup_words(schedule, peak)}{fall}"


def _warmup_words(schedule: ScheduleSettings, peak: Peak) -> str:
    is_noam = schedule.kind == "noam"  # whose peak follows from its scale
    if not schedule.warmup_steps:
        begin = f"the rate begins at {scientific(schedule.peak)} (schedule.peak), then "
        return "" if is_noam else begin
    setting = "" if is_noam else f" (schedule.peak = {schedule.peak:g})"
    return (
        f"the rate rises in a straight line for {count(schedule.warmup_steps, 'step')} "
        f"(schedule.warmup_steps) to its peak of {scientific(peak.rate)} at step {peak.step:,}"
        f"{setting}, then "
    )


def _now_words(config: Config, step: int, rate: float) -> str:
    if step < config.schedule.warmup_steps:
        return (
            f"At step {step:,} the warm-up is not over, so the plot shows the rise only: the "
            f"rate is {scientific(rate)}."
        )
    return f"At step {step:,} the rate is {scientific(rate)}."


def _rollback_words(found: RateComparison) -> str:
    if found.factor_since is None:
        return ""
    return (
        f" Since step {found.factor_since:,} it is {found.factor:g} times what the schedule gives, "
        "on purpose: the run had gone back to an earlier checkpoint because its numbers went wrong."
    )


def _settings(schedule: ScheduleSettings, peak: Peak) -> list[Figure]:
    figures = [
        Figure("schedule", schedule.kind, ""),
        Figure("warm-up", schedule.warmup_steps, "steps"),
        Figure("peak as set", peak.rate, "", note=f"step {peak.step:,}"),
    ]
    if schedule.kind == "noam":
        figures.append(Figure("scale", schedule.scale, "", note="a factor, not a rate"))
    if schedule.kind in ("cosine", "linear"):
        figures.append(Figure("final rate as set", schedule.final, ""))
    return figures
