"""What does the learning-rate plot show? Verdicts: "as set" | "not as set".

The curve as run is compared, step by step, with the curve that follows from the settings. After a
rollback a run goes on with half the rate, on purpose: that is not as set, and nothing to mend. A
rate may be as set and too high: then it is judged by what is usual for a model of this width and
warm-up, and by what happened in the run.
"""

import shlex
from dataclasses import dataclass, replace

import numpy as np

from dragoman.config import Config, ScheduleSettings
from dragoman.diagnosis.answers.unhealthy import MANY_SKIPPED, skipped_share
from dragoman.diagnosis.findings import Advice, Figure, Finding, unknown
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.instability import divergence_of, spikes_of
from dragoman.diagnosis.learning.level import level_of
from dragoman.diagnosis.learning.rate_level import (
    FAR_TOO_HIGH,
    HIGH,
    RateLevel,
    rate_level_of,
)
from dragoman.diagnosis.learning.remedies import lower_the_rate
from dragoman.diagnosis.learning.robust_fit import Floats
from dragoman.diagnosis.phrasing import count, listed, percent, scientific
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.training.divergence import RATE_FACTOR
from dragoman.training.schedule import Peak, learning_rate, own_step_factor, tails_of

SOME_SPIKES = 2
"""So few jumps of the loss are no sign of a rate that is too high."""
USUAL = "2 / sqrt(width x steps of the warm-up)"
_BECAUSE = "steps that are too large never settle"
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
    evidence = _settings(config, peak)
    steps, rates = run.steps["step"], run.steps["learning_rate"].astype(float)
    words = f"The plot shows {_schedule_words(config, peak)}."
    if not len(steps):
        why = f"no step has been recorded yet. What is set: {words.removesuffix('.')}"
        return replace(unknown(why, evidence), plain="Nothing to see yet: no step has been made.")
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
        plain = "The learning rate did not follow its settings, so something changed on the way."
        return Finding("not as set", "high", sentence, evidence, [_what_changed(run)], plain)
    verdict = "as set" if found.factor_since is None else "not as set"
    level = rate_level_of(config)
    evidence.append(
        Figure("highest usual rate", level.usual, "", note=f"step {level.step:,}, by computation")
    )
    is_too_high, why = _too_high(run, level)
    sentence = (
        f"{words} {_now_words(config, int(steps[-1]), float(rates[-1]))}{_rollback_words(found)} "
        "It follows the step alone and does not react to the loss."
        f"{_optimizer_words(config)}{_own_step_words(run)}{why}"
    )
    advice = [lower_the_rate(run, _BECAUSE)] if is_too_high else []
    plain = _plain(config, found, is_too_high)
    return Finding(verdict, "high", sentence, evidence, advice, plain)


def _too_high(run: RunFacts, level: RateLevel) -> tuple[bool, str]:
    """Returns whether the rate is too high for this model, and the sentence that says so.

    Far above the usual is wrong unless the run did well with it; somewhat above it, only if
    something went wrong.
    """
    if level.times_usual < HIGH:
        return False, ""
    symptoms, learned_well = _symptoms(run)
    whose = "it is" if run.config.optimizer.kind != "muon" else "the higher of both is"
    compared = (
        f" At step {level.step:,} {whose} {scientific(level.rate)}, {level.times_usual:.1f} times "
        f"the highest that is usual for a model of width {run.config.model.width:,} "
        f"({scientific(level.usual)}, which is {USUAL})"
    )
    if not symptoms and (level.times_usual < FAR_TOO_HIGH or learned_well):
        return False, f"{compared}, and nothing in this run shows that it did harm."
    happened = f": {listed(symptoms)}" if symptoms else ""
    return True, f"{compared}: it is too high{happened}."


def _symptoms(run: RunFacts) -> tuple[list[str], bool]:
    """Returns the signs of a rate that is too high, and whether the run learned well with it."""
    steps, losses = run.steps["step"], run.steps["loss"]
    rollbacks = sum(i.category == "rollback" for a in run.attempts for i in a.incidents)
    skipped, spikes = skipped_share(run), len(spikes_of(steps, losses))
    evaluations = Evaluations.from_events(run.evaluations).finite
    after = evaluations.where(evaluations.step >= run.config.schedule.warmup_steps)
    level = level_of(after, run.record.vocabulary) if len(after) else None
    found = [
        ("the training loss ran away", divergence_of(steps, losses) is not None),
        (f"the run went back to a checkpoint {rollbacks} times", rollbacks > 0),
        (f"{percent(skipped)} of the updates were skipped", skipped > MANY_SKIPPED),
        (f"the training loss jumped {spikes} times", spikes > SOME_SPIKES),
        (
            f"the validation loss is still at {level.loss if level else 0:.3f} nats",
            level is not None and level.is_poor,
        ),
    ]
    return [words for words, is_so in found if is_so], level is not None and not level.is_poor


def _what_changed(run: RunFacts) -> Advice:
    """Returns how to see what an earlier attempt ran with."""
    manifest = shlex.quote(str(run.record.directory.manifest))
    return Advice(
        "See whether the attempts ran with other versions of the program or other options.",
        f"grep -A 40 '\"attempts\"' {manifest}",
    )


def _plain(config: Config, found: RateComparison, is_too_high: bool) -> str:
    if is_too_high:
        return "The model took steps that are too large to learn well: lower the learning rate."
    if found.factor_since is not None:
        return "The learning rate follows its settings, but was halved after the training slipped."
    shapes = {
        "noam": "rises at first and then falls ever more slowly",
        "inverse-square-root": "rises at first and then falls ever more slowly",
        "cosine": "rises at first and then falls along a curve to its end",
        "linear": "rises at first and then falls evenly to its end",
        "constant": "rises at first and then stays the same",
    }
    shape = shapes[config.schedule.kind]
    if config.optimizer.kind == "schedule-free":
        shape += ", as this way of training needs it"
    return f"The learning rate, the size of the steps in learning, {shape}, exactly as it was set."


def _schedule_words(config: Config, peak: Peak) -> str:
    schedule = config.schedule
    tails = tails_of(schedule, config.training.steps)
    final = (
        f"{scientific(schedule.final)} (schedule.final) at step {config.training.steps or 0:,} "
        "(training.steps)"
    )
    if tails:
        final = f"{scientific(schedule.final)} (schedule.final) at step {tails[0].after_step:,}"
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
    anew = [
        f"after step {tail.after_step:,} from {scientific(tail.rate)} to {scientific(tail.final)} "
        f"at step {tail.last_step:,}"
        for tail in tails
    ]
    if anew:
        fall += f"; the run was extended, and the rate falls anew {listed(anew)} (schedule.tails)"
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


def _optimizer_words(config: Config) -> str:
    """Returns what the optimizer makes of the rate, where that is not the usual."""
    if config.optimizer.kind == "schedule-free":
        return (
            " That it stays is as intended: Schedule-Free AdamW (optimizer.kind) translates "
            "with the average of its weights so far, which does what a falling rate does "
            "elsewhere, so that no end has to be planned."
        )
    if config.optimizer.kind == "muon":
        factor = config.optimizer.muon_rate_factor
        times = "the same rate" if factor == 1 else f"{factor:g} times that rate"
        return (
            " It is the rate of AdamW, for embeddings, norms and biases; Muon changes the matrices "
            f"of the layers at {times} (optimizer.muon_rate_factor), on a scale where both change "
            "weights by about as much."
        )
    return ""


def _own_step_words(run: RunFacts) -> str:
    """Returns what workers make of the rate in steps that they take alone."""
    sync, newest = run.config.sync, run.attempts[-1]
    if sync.mode == "auto":
        return (
            " In steps that workers take alone, if sync.mode = auto has chosen that, they multiply "
            "it by the square root of their number."
        )
    islands = len(newest.host_names if sync.group == "host" else newest.hosts)
    factor = own_step_factor(sync, max(1, islands))
    if factor == 1:
        return ""
    who = "hosts" if sync.group == "host" else "workers"
    return (
        f" Each of the {islands:,} {who} takes steps of its own between two synchronizations, with "
        f"{factor:.3g} times that rate (sync.rate_factor): its share of a "
        "batch has more noise, which the mean over all takes away again."
    )


def _rollback_words(found: RateComparison) -> str:
    if found.factor_since is None:
        return ""
    return (
        f" Since step {found.factor_since:,} it is {found.factor:g} times what the schedule gives, "
        "on purpose: the run had gone back to an earlier checkpoint because its numbers went wrong."
    )


def _settings(config: Config, peak: Peak) -> list[Figure]:
    schedule, optimizer = config.schedule, config.optimizer
    figures = [
        Figure("schedule", schedule.kind, ""),
        Figure("warm-up", schedule.warmup_steps, "steps"),
        Figure("peak as set", peak.rate, "", note=f"step {peak.step:,}"),
    ]
    if schedule.kind == "noam":
        figures.append(Figure("scale", schedule.scale, "", note="a factor, not a rate"))
    if schedule.kind in ("cosine", "linear"):
        figures.append(Figure("final rate as set", schedule.final, ""))
    if optimizer.kind != "adamw":
        figures.append(Figure("optimizer", optimizer.kind, ""))
    if optimizer.kind == "muon":
        figures.append(Figure("rate factor of Muon", optimizer.muon_rate_factor, ""))
    return figures
