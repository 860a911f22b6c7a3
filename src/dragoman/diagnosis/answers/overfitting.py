"""Is it overfitting? Verdicts: "yes" | "no" | "too early to say".

Two losses are compared that can be: on a fixed sample of the training pairs and on validation, both
in evaluation mode. A gap between them is normal. Overfitting is when validation rises while the
training sample still falls; whether BLEU falls with it says what it costs. The running training
loss, with dropout and label smoothing in it, plays no part.
"""

import math
from dataclasses import dataclass
from typing import Literal

from dragoman.diagnosis.answers import overfitting_words as words
from dragoman.diagnosis.findings import Confidence, Figure, Finding, unknown
from dragoman.diagnosis.learning.evaluations import Evaluations, columns_of
from dragoman.diagnosis.learning.power_law import Estimate, Numbers, slope_of
from dragoman.diagnosis.learning.rises import Rise, rise_of, wander_of
from dragoman.diagnosis.phrasing import count
from dragoman.diagnosis.run.facts import RunFacts

KEY = "overfitting"
QUESTION = "Is it overfitting?"

LEAST_EVALUATIONS = 3
FEW_EVALUATIONS = 6
LEAST_AFTER = 3
"""Evaluations after the lowest one, before a rise is called one."""
RISE_NATS = 0.02
"""Smaller rises cost less than other seeds do."""
RISE_SPREADS = 4.3
"""The lowest of many noisy points lies too low, so the usual two will not do. Of simulated plateaus
of 8 to 40 evaluations none rose as far and as steadily where neighbors were independent; where they
were correlated by 0.8, three in a hundred did, and of those with only a dozen points up to ten."""
PASSED_TIMES = 1.5
"""How much further it must have gone than rises before that passed."""
DOUBT_SPREADS = 2.0
FEW_AFTER = 6
"""Evaluations after the lowest: with fewer a rise of so many spreads is a doubt, with more it would
have become clear."""
FALL_SPREADS = 2.0
"""For the training sample, whose place is not chosen by looking at it."""

State = Literal["overfitting", "not", "perhaps", "both rise", "too few"]


@dataclass(frozen=True)
class Overfit:
    state: State
    """perhaps: it looks so, and there are too few evaluations since. both rise: the training sample
    too, so the run is losing what it had learned."""
    rise: Rise | None
    train_change: float
    """Of the training sample's loss since validation was lowest; NaN: not known."""
    bleu_change: float
    """Of BLEU over the same stretch; NaN: not known."""
    bleu_slope: Estimate | None

    @property
    def bleu_falls(self) -> bool:
        return self.bleu_slope is not None and self.bleu_slope.high < 0

    @property
    def bleu_rises(self) -> bool:
        return self.bleu_slope is not None and self.bleu_slope.low > 0 and self.bleu_change > 0


def overfit_of(evaluations: Evaluations) -> Overfit:
    """Of evaluations with a finite validation loss."""
    rise = rise_of(evaluations.validation)
    if rise is None or len(evaluations) < LEAST_EVALUATIONS:
        return Overfit("too few", rise, math.nan, math.nan, None)
    train_change = change_since(evaluations.train_sample, rise)
    return Overfit(
        _state(evaluations, rise, train_change),
        rise,
        train_change,
        bleu_change=change_since(evaluations.bleu, rise),
        bleu_slope=slope_of(evaluations.steps[rise.lowest :], evaluations.bleu[rise.lowest :]),
    )


def change_since(values: Numbers, rise: Rise) -> float:
    """To the mean of up to three newest points. From the lowest one alone: before it a curve may
    still have fallen steeply, after it jumped."""
    newest = values[-_newest(rise) :]
    return float(newest.mean() - values[rise.lowest])


def _newest(rise: Rise) -> int:
    return min(3, max(1, rise.after))


def _state(evaluations: Evaluations, rise: Rise, train_change: float) -> State:
    if rise.rise < max(RISE_NATS, PASSED_TIMES * rise.passed) or rise.spreads < DOUBT_SPREADS:
        return "not"
    stretch = evaluations.train_sample[rise.level_since :]
    bend = rise.lowest - rise.level_since
    train_error = wander_of(stretch, bend, rise.after, (1, _newest(rise)))
    falls = train_change < -train_error
    if rise.spreads < RISE_SPREADS:
        return "perhaps" if falls and rise.after < FEW_AFTER else "not"
    if train_change > FALL_SPREADS * train_error:
        return "both rise"
    if rise.after < LEAST_AFTER:
        return "perhaps" if falls else "not"
    slope = slope_of(evaluations.steps[rise.lowest :], evaluations.validation[rise.lowest :])
    if slope is None or slope.low <= 0:  # a jump that has healed is no trend
        return "not"
    return "overfitting" if falls else "not"


def answer(run: RunFacts) -> Finding:
    every = columns_of(run.evaluations)
    evaluations = every.finite
    if not len(every):
        return unknown(KEY, QUESTION, "no evaluation has been made")
    if math.isnan(every.validation[-1]):
        why = f"the validation loss after step {int(every.steps[-1]):,} is not a number"
        return unknown(KEY, QUESTION, why)
    found = overfit_of(evaluations)
    evidence = _losses(evaluations)
    if found.state == "too few" or found.rise is None:
        sentence = words.too_few(len(evaluations), LEAST_EVALUATIONS)
        return Finding(KEY, QUESTION, "too early to say", "none", sentence, evidence)
    rise = found.rise
    step = int(evaluations.steps[rise.lowest])
    evidence += _changes(found, rise, step)
    if math.isnan(found.train_change) and rise.spreads >= RISE_SPREADS:
        return unknown(KEY, QUESTION, words.cannot_tell(step), evidence)
    match found.state:
        case "overfitting":
            confidence, bleu = _with_bleu(found, rise)
            sentence = words.yes(step, rise, found.train_change, bleu)
            advice = words.advice_on_yes(step, run.record.best_checkpoint, found.bleu_rises)
            return Finding(KEY, QUESTION, "yes", confidence, sentence, evidence, advice)
        case "both rise":
            sentence = words.both_rise(step, rise, found.train_change)
            advice = "Use the best checkpoint, and start a new run with a lower learning rate."
            return Finding(KEY, QUESTION, "no", "high", sentence, evidence, advice)
        case "perhaps":
            more = max(1, LEAST_AFTER - rise.after) if rise.spreads >= RISE_SPREADS else 0
            sentence = words.perhaps(step, rise, more)
            return Finding(KEY, QUESTION, "too early to say", "low", sentence, evidence)
    how, confidence = _why_not(evaluations, rise)
    sample = evaluations.train_sample[-1]
    gap = "" if math.isnan(sample) else words.gap(evaluations.validation[-1], sample)
    return Finding(KEY, QUESTION, "no", confidence, f"No: {how}.{gap}", evidence)


def _with_bleu(found: Overfit, rise: Rise) -> tuple[Confidence, str]:
    """How sure it is, and what BLEU says to it."""
    confidence: Confidence = "high" if rise.spreads > 2 * RISE_SPREADS else "medium"
    if found.bleu_falls:
        return confidence, words.BLEU_FALLS.format(-found.bleu_change)
    if found.bleu_rises:
        return "medium", words.BLEU_RISES.format(found.bleu_change)
    if math.isnan(found.bleu_change):
        return confidence, ""
    return "medium", words.BLEU_WAVERS


def _why_not(evaluations: Evaluations, rise: Rise) -> tuple[str, Confidence]:
    last = float(evaluations.validation[-1])
    if rise.after == 0 or rise.rise <= 0:
        few = len(evaluations) < FEW_EVALUATIONS
        return words.at_its_lowest(last), "medium" if few else "high"
    if rise.spreads < DOUBT_SPREADS:
        return words.wavers(last), "medium"
    if rise.rise < RISE_NATS:
        return words.small(rise), "medium"
    if rise.rise < PASSED_TIMES * rise.passed:
        return words.passed_before(rise), "low"
    if rise.spreads < RISE_SPREADS:
        return words.in_doubt(rise), "low"
    return words.UNSTEADY, "low"


def _losses(evaluations: Evaluations) -> list[Figure]:
    last = int(evaluations.steps[-1])
    validation, sample = evaluations.validation[-1], evaluations.train_sample[-1]
    errors = evaluations.validation_error[-1], evaluations.train_sample_error[-1]
    return [
        Figure("evaluations", len(evaluations), ""),
        loss_figure("validation loss", validation, errors[0], f"after step {last:,}"),
        loss_figure("train-sample loss", sample, errors[1], f"after step {last:,}"),
        loss_figure("gap between them", validation - sample, math.hypot(*errors), ""),
    ]


def loss_figure(name: str, value: float, error: float, note: str) -> Figure:
    """With its interval, where the error is known: how other sentences of the kind would do."""
    if math.isnan(value):
        return Figure(name, None, "nats", note="not measured")
    if math.isnan(error):
        return Figure(name, float(value), "nats", note=note)
    half = 1.96 * error
    return Figure(name, float(value), "nats", float(value - half), float(value + half), note)


def _changes(found: Overfit, rise: Rise, step: int) -> list[Figure]:
    """Since the validation loss was lowest."""
    is_it = found.state == "overfitting"
    lowest = Figure("began after step" if is_it else "validation lowest after step", step, "steps")
    if rise.after == 0:
        return [lowest]
    half = 1.96 * rise.error
    return [
        lowest,
        Figure(
            "rise of the validation loss since then",
            rise.rise,
            "nats",
            rise.rise - half,
            rise.rise + half,
            f"{count(rise.after, 'evaluation')} since then",
        ),
        Figure("change of the train-sample loss since then", _known(found.train_change), "nats"),
        Figure("change of BLEU since then", _known(found.bleu_change), "BLEU"),
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
