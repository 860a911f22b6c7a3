"""What does the learning-rate plot show? Verdicts: "as set" | "not as set".

The curve as run is compared, step by step, with the curve that follows from the settings. After a
rollback a run goes on with half the rate, on purpose: that is not as set, and nothing to mend.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dragoman.config import Config, ScheduleSettings
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.learning.power_law import Numbers
from dragoman.diagnosis.phrasing import count, percent, scientific
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.training.divergence import RATE_FACTOR
from dragoman.training.schedule import Peak, learning_rate

KEY = "learning-rate"
QUESTION = "What does the learning-rate plot show, and which setting makes it so?"

"""How training tells of a rollback (training/rollback.py)."""
TOLERANCE = 1e-6
"""Of a rate, as a share of it: both are computed by the same function, and written as text."""


@dataclass(frozen=True)
class Comparison:
    """Of the curve as run with the curve as set."""

    deviating: int
    """Steps whose rate follows neither from the settings nor from a rollback."""
    first_deviating: int | None
    largest: float
    """Deviation, as a share of the rate as set times the factor of rollbacks."""
    factor: float
    """Of the last step: 1, or a power of RATE_FACTOR after rollbacks."""
    factor_since: int | None


def compare(steps: Numbers, rates: Numbers, planned: Numbers, rollbacks: int) -> Comparison:
    """`rollbacks`: how many the run tells of; each may have halved the rate once."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(planned > 0, rates / planned, np.where(rates == planned, 1.0, np.inf))
        halvings = np.round(np.log(ratios) / np.log(RATE_FACTOR))
    # A factor only ever gets smaller; NaN and infinite ratios fit no factor.
    halvings = np.clip(np.where(np.isfinite(halvings), halvings, 0.0), 0.0, rollbacks)
    allowed = halvings >= np.maximum.accumulate(halvings)
    beyond = np.abs(ratios / RATE_FACTOR**halvings - 1)
    beyond = np.where(np.isfinite(beyond), beyond, np.inf)
    wrong = np.flatnonzero((beyond > TOLERANCE) | ~allowed)
    changed = np.flatnonzero(np.diff(halvings, prepend=0.0))
    return Comparison(
        deviating=len(wrong),
        first_deviating=int(steps[wrong[0]]) if len(wrong) else None,
        largest=float(np.abs(ratios / RATE_FACTOR**halvings - 1)[wrong].max())
        if len(wrong)
        else 0.0,
        factor=float(RATE_FACTOR ** halvings[-1]),
        factor_since=int(steps[changed[-1]]) if len(changed) else None,
    )


def answer(run: RunFacts) -> Finding:
    config, schedule = run.config, run.config.schedule
    planned_rate = learning_rate(schedule, config.model.width, config.training.steps)
    summit = max(1, schedule.warmup_steps)
    peak = Peak(summit, planned_rate(summit))
    evidence = _settings(schedule, peak)
    steps, rates = run.steps["step"], run.steps["learning_rate"].astype(float)
    words = _WORDS[schedule.kind](config, peak)
    if not len(steps):
        return unknown(
            KEY, QUESTION, f"no step has been recorded yet. What is set: {words}"[:-1], evidence
        )
    planned = np.fromiter(map(planned_rate, steps.tolist()), dtype=float, count=len(steps))
    found = compare(steps, rates, planned, _rollbacks(run))
    highest = int(np.nanargmax(rates)) if np.isfinite(rates).any() else 0
    evidence += [
        Figure("highest rate as run", float(rates[highest]), "", note=f"step {steps[highest]:,}"),
        Figure("rate of the last step", float(rates[-1]), "", note=f"step {steps[-1]:,}"),
        Figure("steps that deviate", found.deviating, "steps"),
        Figure("largest deviation", found.largest, "share"),
    ]
    if found.deviating:
        return Finding(
            KEY,
            QUESTION,
            "not as set",
            "high",
            f"From step {found.first_deviating:,} on, {count(found.deviating, 'step')} had another "
            f"rate than the settings give, by up to {percent(found.largest)}. As set: {words}",
            evidence,
            "Look for what changed between the attempts of this run: config.toml, or the version "
            "of the program.",
        )
    return Finding(
        KEY,
        QUESTION,
        "as set" if found.factor_since is None else "not as set",
        "high",
        f"{words}{_progress(config, int(steps[-1]), float(rates[-1]))}"
        f"{_rollback_words(found)} It follows the step alone and does not react to the loss.",
        evidence,
    )


def _rollbacks(run: RunFacts) -> int:
    return sum(
        trouble.category == "rollback" for attempt in run.attempts for trouble in attempt.incidents
    )


def _noam(config: Config, peak: Peak) -> str:
    schedule, width = config.schedule, config.model.width
    rise = ""
    if schedule.warmup_steps:
        rise = (
            f"the rate rises in a straight line for {count(schedule.warmup_steps, 'step')} "
            f"(schedule.warmup_steps) to {_peak_words(peak)}, then "
        )
    return (
        f"The plot shows the Noam schedule: {rise}falls with the inverse square root of the step: "
        "after four times as many steps it is half. "
        f"schedule.scale = {schedule.scale:g} is a factor and not a rate: the peak is scale / "
        f"sqrt(model width {width:,} x {max(1, schedule.warmup_steps):,} warm-up steps)."
    )


def _inverse_square_root(config: Config, peak: Peak) -> str:
    return (
        f"The plot shows an inverse-square-root schedule: {_warm_up(config, peak)} falls with the "
        "inverse square root of the step: after four times as many steps it is half."
    )


def _cosine(config: Config, peak: Peak) -> str:
    return (
        f"The plot shows a cosine schedule: {_warm_up(config, peak)} falls along half a cosine to "
        f"{_final(config)}."
    )


def _linear(config: Config, peak: Peak) -> str:
    return (
        f"The plot shows a linear schedule: {_warm_up(config, peak)} falls in a straight line to "
        f"{_final(config)}."
    )


def _constant(config: Config, peak: Peak) -> str:
    return f"The plot shows a constant schedule: {_warm_up(config, peak)} stays there."


_WORDS: dict[str, Callable[[Config, Peak], str]] = {
    "noam": _noam,
    "inverse-square-root": _inverse_square_root,
    "cosine": _cosine,
    "linear": _linear,
    "constant": _constant,
}


def _warm_up(config: Config, peak: Peak) -> str:
    schedule = config.schedule
    if not schedule.warmup_steps:
        return f"the rate begins at {scientific(schedule.peak)} (schedule.peak), then"
    return (
        f"the rate rises in a straight line for {count(schedule.warmup_steps, 'step')} "
        f"(schedule.warmup_steps) to {_peak_words(peak)} (schedule.peak = {schedule.peak:g}), then"
    )


def _peak_words(peak: Peak) -> str:
    return f"its peak of {scientific(peak.rate)} at step {peak.step:,}"


def _final(config: Config) -> str:
    return (
        f"{scientific(config.schedule.final)} (schedule.final) at step "
        f"{config.training.steps or 0:,} (training.steps)"
    )


def _progress(config: Config, last_step: int, last_rate: float) -> str:
    if last_step < config.schedule.warmup_steps:
        return (
            f" At step {last_step:,} the warm-up is not over, so the plot shows the rise only: the "
            f"rate is {scientific(last_rate)}."
        )
    return f" At step {last_step:,} the rate is {scientific(last_rate)}."


def _rollback_words(found: Comparison) -> str:
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
