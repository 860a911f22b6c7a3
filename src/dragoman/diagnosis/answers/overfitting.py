"""Is it overfitting? Verdicts: "yes" | "no" | "too early to say".

Two losses are compared that can be: on a fixed sample of the training pairs and on validation, both
in evaluation mode. A gap between them is normal. Overfitting is when validation rises while the
training sample still falls; whether BLEU falls with it says what it costs. The running training
loss, with dropout and label smoothing in it, plays no part.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from dragoman.diagnosis.answers.unhealthy import unheld
from dragoman.diagnosis.commands import setting_line
from dragoman.diagnosis.estimate import Estimate
from dragoman.diagnosis.findings import Advice, Confidence, Figure, Finding, unknown
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.leak import leak_of
from dragoman.diagnosis.learning.level import SURPRISE
from dragoman.diagnosis.learning.overfit import (
    LEAST_AFTER,
    LEAST_EVALUATIONS,
    RISE_SPREADS,
    NotOverfit,
    Overfit,
    overfit_of,
)
from dragoman.diagnosis.learning.remedies import lower_the_rate, more_dropout, use_best
from dragoman.diagnosis.phrasing import count, there_are
from dragoman.diagnosis.run.facts import RunFacts

FEW_EVALUATIONS = 6

_HARDLY = "little more than it may waver by itself"
_PROBABILITIES = "so far it costs probabilities, not translations."
_UNTESTED = "Nobody can tell yet: the model has not been tested on held-out sentences."
_RISEN = "the validation loss has risen"
_WHY_NOT: Mapping[NotOverfit, tuple[str, Confidence]] = {
    "at its lowest": (
        f"the validation loss is at its lowest, {{last:.3f}} nats ({SURPRISE})",
        "high",
    ),
    "within noise": (
        f"the validation loss, {{last:.3f}} nats ({SURPRISE}), has not risen by more than it may "
        "waver by itself",
        "medium",
    ),
    "small rise": (f"{_RISEN} by no more than {{rise:.3f}} nats", "medium"),
    "passed before": (
        f"{_RISEN} by {{rise:.3f}} nats, hardly more than in earlier rises from which it came back",
        "low",
    ),
    "in doubt": (f"{_RISEN} by {{rise:.3f}} nats, {_HARDLY}", "low"),
    "unsteady": (f"{_RISEN} and does not rise steadily against the training sample", "low"),
}


def answer(run: RunFacts) -> Finding:
    every = Evaluations.from_events(run.evaluations)
    if not len(every):
        return replace(unknown("no evaluation has been made"), plain=_UNTESTED)
    if math.isnan(every.validation_loss[-1]):
        why = f"the validation loss after step {int(every.step[-1]):,} is not a number"
        return replace(unknown(why), plain="Nobody can tell: the training has broken down.")
    evaluations = every.finite
    found = overfit_of(evaluations)
    evidence = _losses(evaluations)
    if leak := leak_of(run.config, evaluations, [scored.bleu for scored in run.record.scored]):
        return unheld(leak, "overfitting", evidence)
    if found is None:
        sentence = (
            f"Too early to say: {there_are(len(evaluations), 'evaluation')} so far, and a trend "
            f"needs {LEAST_EVALUATIONS}. "
            f"{_can_be_said_after(LEAST_EVALUATIONS - len(evaluations))}"
        )
        plain = "It is too early to say: there are too few tests on held-out sentences."
        return Finding("too early to say", "none", sentence, evidence, plain=plain)
    evidence += _changes(found)
    match found.state:
        case "overfitting":
            return _overfitting(run, found, evidence)
        case "both rise":
            return _losing_ground(run, found, evidence)
        case "perhaps":
            plain = "It may have begun to, but it is too early to say."
            return Finding("too early to say", "low", _perhaps_words(found), evidence, plain=plain)
        case "unexplained":
            return _unexplained(run, found, evidence)
    why_not, confidence = _WHY_NOT[found.state]
    why_not = why_not.format(rise=found.rise.rise, last=evaluations.validation_loss[-1])
    if found.state == "at its lowest" and len(evaluations) < FEW_EVALUATIONS:
        confidence = "medium"
    sentence = f"No: {why_not}.{_gap_words(evaluations)}"
    plain = "No: the model does about as well as ever on sentences that it has not learned from."
    return Finding("no", confidence, sentence, evidence, plain=plain)


def _overfitting(run: RunFacts, found: Overfit, evidence: list[Figure]) -> Finding:
    confidence, bleu = _with_bleu(found)
    sentence = (
        f"Yes, since step {found.lowest_step:,}: the validation loss has risen by "
        f"{found.rise.rise:.3f} nats ({SURPRISE}) while the loss on a fixed sample of the training "
        f"pairs went on falling by {-found.train_change:.3f}.{bleu}"
    )
    if found.bleu_rises:
        best = use_best(run, "its translations are the best so far")
        plain = (
            "Yes: it begins to learn its training sentences by heart, although the translations "
            "still get better."
        )
    else:
        best = use_best(run, "it is the best that is kept, and later ones are worse")
        plain = (
            "Yes: it learns its training sentences by heart and gets worse on others, so stop "
            "training."
        )
    again = more_dropout(run, "the model learns its training pairs by heart")
    return Finding("yes", confidence, sentence, evidence, [*best, again], plain)


def _losing_ground(run: RunFacts, found: Overfit, evidence: list[Figure]) -> Finding:
    sentence = (
        f"No, but after step {found.lowest_step:,} the run began to lose what it had learned: the "
        f"validation loss has risen by {found.rise.rise:.3f} nats ({SURPRISE}), and so has the "
        f"loss on a sample of the training pairs, by {found.train_change:.3f}. That is no "
        "overfitting but a learning rate that is too high, or broken data."
    )
    advice = [
        lower_the_rate(run, "smaller steps keep what was learned"),
        *use_best(run, "it is the best that is kept"),
    ]
    plain = "No, but something else is wrong: the model forgets what it had learned."
    return Finding("no", "high", sentence, evidence, advice, plain)


def _unexplained(run: RunFacts, found: Overfit, evidence: list[Figure]) -> Finding:
    why = (
        f"the validation loss has risen since step {found.lowest_step:,}, and without losses on a "
        "training sample (evaluation.train_sample_pairs) nobody can tell overfitting from a run "
        "that falls apart"
    )
    measure = Advice(
        "Have the loss on a sample of the training pairs evaluated as well.",
        setting_line("evaluation.train_sample_pairs", 1000),
    )
    advice = [] if run.config.evaluation.train_sample_pairs else [measure]
    plain = "Nobody can tell: how well it knows its training sentences was not measured."
    return replace(unknown(why, evidence), advice=advice, plain=plain)


def _with_bleu(found: Overfit) -> tuple[Confidence, str]:
    """Returns how sure overfitting is, and what BLEU says about it."""
    confidence: Confidence = "high" if found.rise.spreads > 2 * RISE_SPREADS else "medium"
    if found.bleu_falls:
        return confidence, f" BLEU has fallen by {-found.bleu_change:.1f} since then."
    if found.bleu_rises:
        risen = f" BLEU has risen by {found.bleu_change:.1f} since then: {_PROBABILITIES}"
        return "medium", risen
    if math.isnan(found.bleu_change):
        return confidence, ""
    return "medium", f" BLEU has not fallen yet: {_PROBABILITIES}"


def _perhaps_words(found: Overfit) -> str:
    rise = found.rise
    why = f"{_HARDLY}. The next evaluations will tell."
    if rise.spreads >= RISE_SPREADS:
        more = max(1, LEAST_AFTER - rise.after)
        why = f"but {there_are(rise.after, 'evaluation')} since then. {_can_be_said_after(more)}"
    return (
        f"Too early to say: since step {found.lowest_step:,} the validation loss has risen by "
        f"{rise.rise:.3f} nats, {why}"
    )


def _gap_words(evaluations: Evaluations) -> str:
    gap = float(evaluations.validation_loss[-1] - evaluations.train_sample_loss[-1])
    if math.isnan(gap):
        return ""
    return (
        f" It is {abs(gap):.3f} nats {'above' if gap >= 0 else 'below'} the loss on a sample of "
        "the training pairs; such a gap alone is no overfitting."
    )


def _can_be_said_after(evaluations: int) -> str:
    return f"After {count(evaluations, 'more evaluation')} it can be said."


def _losses(evaluations: Evaluations) -> list[Figure]:
    after = f"after step {int(evaluations.step[-1]):,}"
    validation, sample = evaluations.validation_loss[-1], evaluations.train_sample_loss[-1]
    errors = evaluations.validation_loss_error[-1], evaluations.train_sample_loss_error[-1]
    return [
        Figure("evaluations", len(evaluations), ""),
        loss_figure("validation loss", validation, errors[0], after),
        loss_figure("train-sample loss", sample, errors[1], after),
        loss_figure("gap between them", validation - sample, math.hypot(*errors), ""),
    ]


def loss_figure(name: str, value: float, error: float, note: str) -> Figure:
    """Returns the loss with the interval in which other sentences of the kind would be, where the
    standard error is known."""
    if math.isnan(value):
        return Figure(name, None, "nats", note="not measured")
    if math.isnan(error):
        return Figure(name, float(value), "nats", note=note)
    return Estimate.of(float(value), float(error)).figure(name, "nats", note)


def _changes(found: Overfit) -> list[Figure]:
    """Returns the changes since the validation loss was lowest."""
    rise = found.rise
    is_it = found.state == "overfitting"
    name = "began after step" if is_it else "validation lowest after step"
    lowest = Figure(name, found.lowest_step, "steps")
    if rise.after == 0:
        return [lowest]
    return [
        lowest,
        Estimate.of(rise.rise, rise.error).figure(
            "rise of the validation loss since then",
            "nats",
            f"{count(rise.after, 'evaluation')} since then",
        ),
        Figure("change of the train-sample loss since then", _known(found.train_change), "nats"),
        Figure("change of BLEU since then", _known(found.bleu_change), "BLEU"),
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
