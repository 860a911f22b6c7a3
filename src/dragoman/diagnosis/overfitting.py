"""Is it overfitting? Verdicts: "yes" | "no" | "too early to say".

Two losses are compared that can be: on a fixed sample of the training pairs and on validation, both
in evaluation mode. A gap between them is normal. Overfitting is when validation rises while the
training sample still falls. The running training loss, with dropout and label smoothing in it,
plays no part.
"""

import math
from dataclasses import dataclass
from typing import Literal

from dragoman.diagnosis.curve_fits import Numbers, slope_of
from dragoman.diagnosis.evaluations import Evaluations, columns_of
from dragoman.diagnosis.findings import Confidence, Figure, Finding, unknown
from dragoman.diagnosis.history import History
from dragoman.diagnosis.record import RunRecord
from dragoman.diagnosis.rises import Rise, noise_of, rise_of
from dragoman.diagnosis.wording import count

KEY = "overfitting"
QUESTION = "Is it overfitting?"

LEAST_EVALUATIONS = 3
LEAST_AFTER = 3
"""Evaluations after the lowest one, before a rise is called one."""
RISE_NATS = 0.02
"""Smaller rises cost less than other seeds do."""
RISE_SPREADS = 4.0
"""The lowest of many noisy points lies too low, so the usual two will not do. Of simulated plateaus
of 4 to 100 evaluations at most two in a hundred rose as far and as steadily."""
PASSED_TIMES = 1.5
"""How much further it must have gone than rises before that passed."""
DOUBT_SPREADS = 2.5
FEW_AFTER = 6
"""Evaluations after the lowest: with fewer a rise of so many spreads is a doubt, with more it would
have become clear."""
FALL_SPREADS = 2.0
"""For the training sample, whose place is not chosen by looking at it."""

_HARDLY = "little more than it wavers from one evaluation to the next"

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
    bleu_falls: bool


def overfit_of(evaluations: Evaluations) -> Overfit:
    """Of evaluations with a finite validation loss."""
    rise = rise_of(evaluations.validation)
    if rise is None or len(evaluations) < LEAST_EVALUATIONS:
        return Overfit("too few", rise, math.nan, math.nan, False)
    train_change = change_since(evaluations.train_sample, rise)
    bleu_change = change_since(evaluations.bleu, rise)
    bleu_slope = slope_of(evaluations.steps[rise.lowest :], evaluations.bleu[rise.lowest :])
    return Overfit(
        _state(evaluations, rise, train_change),
        rise,
        train_change,
        bleu_change,
        bleu_falls=bleu_slope is not None and bleu_slope.high < 0,
    )


def change_since(values: Numbers, rise: Rise) -> float:
    """To the mean of up to three newest points. From the lowest one alone: before it a curve may
    still have fallen steeply, after it jumped."""
    newest = values[-min(3, max(1, rise.after)) :]
    return float(newest.mean() - values[rise.lowest])


def _state(evaluations: Evaluations, rise: Rise, train_change: float) -> State:
    if rise.rise < max(RISE_NATS, PASSED_TIMES * rise.passed) or rise.spreads < DOUBT_SPREADS:
        return "not"
    train_noise = noise_of(evaluations.train_sample[rise.level_since :])
    falls = train_change < -train_noise
    if rise.spreads < RISE_SPREADS:
        return "perhaps" if falls and rise.after < FEW_AFTER else "not"
    if train_change > FALL_SPREADS * train_noise:
        return "both rise"
    if rise.after < LEAST_AFTER:
        return "perhaps" if falls else "not"
    slope = slope_of(evaluations.steps[rise.lowest :], evaluations.validation[rise.lowest :])
    if slope is None or slope.low <= 0:  # a jump that has healed is no trend
        return "not"
    return "overfitting" if falls else "not"


def answer(record: RunRecord, history: History) -> Finding:
    every = columns_of(history.evaluations)
    evaluations = every.finite
    if not len(every):
        return unknown(KEY, QUESTION, "no evaluation has been made")
    if math.isnan(every.validation[-1]):
        why = f"the validation loss after step {int(every.steps[-1]):,} is not a number"
        return unknown(KEY, QUESTION, why)
    evidence = _evidence(evaluations)
    found = overfit_of(evaluations)
    if found.state == "too few" or found.rise is None:
        more = LEAST_EVALUATIONS - len(evaluations)
        return Finding(
            KEY,
            QUESTION,
            "too early to say",
            "none",
            f"Too early to say: there {_are(len(evaluations))} so far, and a trend needs "
            f"{LEAST_EVALUATIONS}. After {count(more, 'more evaluation')} it can be said.",
            evidence,
        )
    evidence += [
        Figure(
            "began after step" if found.state == "overfitting" else "validation lowest after step",
            _step(evaluations, found.rise),
            "steps",
        ),
        _rise_figure(found.rise),
        Figure("change of the train-sample loss since then", _known(found.train_change), "nats"),
        Figure("change of BLEU since then", _known(found.bleu_change), "BLEU"),
    ]
    if math.isnan(found.train_change) and found.rise.spreads >= RISE_SPREADS:
        return unknown(
            KEY,
            QUESTION,
            f"the validation loss has risen since step {_step(evaluations, found.rise):,}, and "
            "without losses on a training sample nobody can tell overfitting from a run that "
            "falls apart; set evaluation.train_sample_pairs to 1000",
            evidence,
        )
    return _FINDINGS[found.state](record, evaluations, found, found.rise, evidence)


def _overfitting(
    record: RunRecord, evaluations: Evaluations, found: Overfit, rise: Rise, evidence: list[Figure]
) -> Finding:
    step = _step(evaluations, rise)
    bleu = ""
    confidence: Confidence = "high" if rise.spreads > 2 * RISE_SPREADS else "medium"
    if found.bleu_falls:
        bleu = f" BLEU has fallen by {-found.bleu_change:.1f} since then."
    elif not math.isnan(found.bleu_change):
        confidence = "medium"
        bleu = " BLEU has not fallen yet: so far it costs probabilities, not translations."
    best = f" ({record.best_checkpoint})" if record.best_checkpoint else ""
    return Finding(
        KEY,
        QUESTION,
        "yes",
        confidence,
        f"Yes, since step {step:,}: the validation loss has risen by {rise.rise:.3f} nats while "
        f"the loss on a fixed sample of the training pairs went on falling by "
        f"{-found.train_change:.3f}.{bleu}",
        evidence,
        f"Use the best checkpoint{best} or one from around step {step:,}, and stop this run. For a "
        "better model: more training pairs, more model.dropout, or a smaller model; "
        "training.patience stops the next run in time.",
    )


def _not(
    record: RunRecord, evaluations: Evaluations, found: Overfit, rise: Rise, evidence: list[Figure]
) -> Finding:
    last = evaluations.validation[-1]
    few = len(evaluations) < 6
    confidence: Confidence = "medium" if few else "high"
    if rise.after == 0 or rise.rise <= 0:
        how = f"the validation loss is at its lowest, {last:.3f} nats"
    elif rise.spreads < DOUBT_SPREADS:
        how = (
            f"the validation loss, {last:.3f} nats, has not risen by more than it wavers from one "
            "evaluation to the next"
        )
        confidence = "medium"
    elif rise.rise < RISE_NATS:
        how = f"the validation loss has risen by no more than {rise.rise:.3f} nats"
        confidence = "medium"
    elif rise.rise < PASSED_TIMES * rise.passed:
        how = (
            f"the validation loss has risen by {rise.rise:.3f} nats, hardly more than in earlier "
            "rises from which it came back"
        )
        confidence = "low"
    elif rise.spreads < RISE_SPREADS:
        how = f"the validation loss has risen by {rise.rise:.3f} nats, {_HARDLY}"
        confidence = "low"
    else:
        how = "the validation loss has risen and does not rise steadily against the training sample"
        confidence = "low"
    gap = ""
    if not math.isnan(evaluations.train_sample[-1]):
        gap = (
            f" It is {abs(last - evaluations.train_sample[-1]):.3f} nats "
            f"{'above' if last >= evaluations.train_sample[-1] else 'below'} the loss on a sample "
            "of the training pairs; such a gap alone is no overfitting."
        )
    return Finding(KEY, QUESTION, "no", confidence, f"No: {how}.{gap}", evidence)


def _perhaps(
    record: RunRecord, evaluations: Evaluations, found: Overfit, rise: Rise, evidence: list[Figure]
) -> Finding:
    more = max(1, LEAST_AFTER - rise.after)
    risen = (
        f"since step {_step(evaluations, rise):,} the validation loss has risen by "
        f"{rise.rise:.3f} nats"
    )
    if rise.spreads < RISE_SPREADS:
        why = f"{_HARDLY}. The next evaluations will tell."
    else:
        why = (
            f"but there {_are(rise.after)} since then. After {count(more, 'more evaluation')} it "
            "can be said."
        )
    return Finding(
        KEY,
        QUESTION,
        "too early to say",
        "low",
        f"Too early to say: {risen}, {why}",
        evidence,
    )


def _both_rise(
    record: RunRecord, evaluations: Evaluations, found: Overfit, rise: Rise, evidence: list[Figure]
) -> Finding:
    return Finding(
        KEY,
        QUESTION,
        "no",
        "high",
        f"No, but after step {_step(evaluations, rise):,} the run began to lose what it had "
        f"learned: the validation loss has risen by {rise.rise:.3f} nats, and so has the loss on a "
        f"sample of the training pairs, by {found.train_change:.3f}. That is no overfitting but a "
        "learning rate that is too high, or broken data.",
        evidence,
        "Use the best checkpoint, and start a new run with a lower learning rate.",
    )


_FINDINGS = {
    "overfitting": _overfitting,
    "not": _not,
    "perhaps": _perhaps,
    "both rise": _both_rise,
}


def _evidence(evaluations: Evaluations) -> list[Figure]:
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


def _rise_figure(rise: Rise) -> Figure:
    half = 1.96 * rise.error
    return Figure(
        "rise of the validation loss since then",
        rise.rise,
        "nats",
        rise.rise - half,
        rise.rise + half,
        f"{count(rise.after, 'evaluation')} since then",
    )


def _step(evaluations: Evaluations, rise: Rise) -> int:
    return int(evaluations.steps[rise.lowest])


def _are(number: int) -> str:
    return f"{'is' if number == 1 else 'are'} {count(number, 'evaluation')}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
