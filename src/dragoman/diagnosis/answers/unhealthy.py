"""Findings about runs that cannot be fully trained, whatever their losses promise.

A run that has diverged, has learned nothing, rests at a poor level, or skips many of its updates;
and one whose held-out pairs do not seem to be held out.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from dragoman.diagnosis.findings import Advice, Figure, Finding, unknown
from dragoman.diagnosis.learning.bleu_scale import grade_of
from dragoman.diagnosis.learning.leak import Leak
from dragoman.diagnosis.learning.level import Level, loss_words
from dragoman.diagnosis.learning.rate_level import FAR_TOO_HIGH, HIGH, rate_level_of
from dragoman.diagnosis.learning.remedies import (
    another_precision,
    inspect_pairs,
    larger_model,
    lower_the_rate,
    more_dropout,
    use_best,
)
from dragoman.diagnosis.phrasing import count, percent, scientific
from dragoman.diagnosis.run.facts import RunFacts

MANY_SKIPPED = 0.05
"""Of all updates: a run that skips more is not healthy, wherever its loss comes to rest."""
LARGE_GAP_NATS = 0.3
"""Between training sample and validation: the model could learn the pairs, but not what they have
in common."""
FEW_PAIRS = 200_000
"""With fewer training pairs it is mostly the data that limits a model."""


def skipped_share(run: RunFacts) -> float:
    """Returns the share of all updates that were skipped."""
    updated = run.steps["updated"].astype(bool)
    return float((~updated).mean()) if len(updated) else 0.0


def unheld(leak: Leak, what: str, evidence: Sequence[Figure]) -> Finding:
    """Returns a finding without an answer: the held-out pairs do not seem to be held out."""
    found = unknown(
        f"the held-out pairs cannot tell {what}: {leak.bleu:.1f} BLEU is more than any system "
        "reaches on text that people wrote, so they are probably in the training set as well",
        evidence,
    )
    plain = (
        "Nobody can tell: the test sentences were probably part of the training, so the scores "
        "mean nothing."
    )
    return replace(found, plain=plain)


def diverged(run: RunFacts, divergence: str, evidence: list[Figure]) -> Finding:
    return Finding(
        "not yet",
        "high",
        f"Not yet: the run has diverged, which means that training destroys what it had learned. "
        f"{divergence}",
        evidence,
        [
            lower_the_rate(run, "smaller steps keep it from running away again"),
            *use_best(run, "it is from before the loss ran away, as far as its scores tell"),
        ],
        "No: the training went off the rails, and the newest model is worse than an earlier one.",
    )


def learned_nothing(run: RunFacts, level: Level, evidence: list[Figure]) -> Finding:
    advice = [
        inspect_pairs(run, "pairs that do not belong together teach nothing"),
        lower_the_rate(run, "steps that are too large also look like this"),
    ]
    return Finding(
        "not yet",
        "high",
        f"Not yet: the validation loss stays at {loss_words(level.loss)}, and guessing among all "
        f"pieces alike would give {level.guessing:.2f}: the model has learned little more than "
        "which pieces are frequent.",
        evidence,
        advice if rate_level_of(run.config).times_usual < HIGH else advice[::-1],
        "No: the model has learned next to nothing.",
    )


def poor(run: RunFacts, level: Level, is_at_rest: bool, evidence: list[Figure]) -> Finding:
    """Of a loss that is far above what translation models reach and does not clearly fall."""
    bleu = (
        "" if math.isnan(level.bleu) else f", with {level.bleu:.1f} BLEU ({grade_of(level.bleu)})"
    )
    causes, advice = _causes_of_poor(run, level)
    trend = "It wavers too much to see whether it still falls"
    if is_at_rest:
        trend = "More steps of the same kind would bring hardly anything"
    return Finding(
        "not yet",
        "low",
        f"Not yet: the validation loss {'rests' if is_at_rest else 'stays'} at "
        f"{loss_words(level.loss)}{bleu}. That is {percent(level.share)} of the loss of guessing, "
        f"where good translation models have about 15 %. {trend}, so something else holds it back: "
        f"{' or '.join(causes)}.",
        evidence,
        advice[:3],
        "No: it has stopped learning, but its translations are still poor, so something else than "
        "the length of the training is wrong.",
    )


def _causes_of_poor(run: RunFacts, level: Level) -> tuple[list[str], list[Advice]]:
    """Returns the likely causes of a poor level, the likeliest first, and what to do about them."""
    rate = rate_level_of(run.config)
    passport = run.record.passport
    pairs = passport.splits["train"].pairs_kept if passport else None
    slower = lower_the_rate(run, "steps that are too large never settle")
    if rate.times_usual > FAR_TOO_HIGH:
        return [f"a learning rate far too high ({scientific(rate.rate)})"], [slower]
    causes: list[str] = []
    advice: list[Advice] = []
    if rate.times_usual > HIGH or skipped_share(run) > MANY_SKIPPED:
        causes.append(f"a learning rate that is too high ({scientific(rate.rate)})")
        advice.append(slower)
    if level.gap > LARGE_GAP_NATS:
        few = "" if pairs is None else f" ({count(pairs, 'training pair')})"
        causes.append(f"too little training data{few}, since training pairs do much better")
        advice.append(more_dropout(run, "training pairs do much better than held-out ones"))
        return causes, advice
    larger = larger_model(run, "not even the training pairs are learned well")
    if pairs is not None and pairs < FEW_PAIRS:
        causes.append(f"too little training data ({count(pairs, 'pair')})")
    elif larger:
        causes.append("a model that is too small for the data")
        advice += larger
    causes.append("pairs of lines that do not belong together")
    advice.append(inspect_pairs(run, "wrong pairs keep a loss high"))
    if slower not in advice:
        causes.append("a learning rate that is too high for this data")
        advice.append(slower)
    return causes, advice


def much_skipped(run: RunFacts, level: Level, skipped: float, evidence: list[Figure]) -> Finding:
    return Finding(
        "not yet",
        "low",
        f"Not yet, as far as one can tell: the validation loss rests at {loss_words(level.loss)}, "
        f"but {percent(skipped)} of all updates were skipped because loss or gradients were not "
        "finite, so it is not known where a healthy run would come to rest.",
        [*evidence, Figure("skipped updates, of all", skipped, "share")],
        [
            *another_precision(run, "its numbers do not overflow"),
            lower_the_rate(run, "fewer updates will have to be skipped"),
        ],
        "Probably not: it has stopped getting better, but much of its training failed and was "
        "thrown away.",
    )
