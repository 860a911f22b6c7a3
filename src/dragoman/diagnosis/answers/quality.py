"""How good are the translations, is the score to be trusted, and is the last gain a real one?

Verdicts: BLEU and its interval, "39.0 BLEU (38.1 to 39.9)"; of several test sets that of the first,
with its name, "39.0 BLEU (38.1 to 39.9) on news".
"""

import math
import shlex
from collections.abc import Sequence

from dragoman.diagnosis.answers import trained
from dragoman.diagnosis.findings import Advice, Confidence, Figure, Finding
from dragoman.diagnosis.learning.bleu_scale import (
    KnownTestSet,
    grade_of,
    known_test_set,
    place_words,
    scale_words,
)
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.kept import best_kept
from dragoman.diagnosis.learning.leak import UNREACHED_BLEU, Leak, leak_of
from dragoman.diagnosis.learning.remedies import find_leak, without_leaks
from dragoman.diagnosis.phrasing import count
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.evaluation.scores import ScoredSplit
from dragoman.telemetry.events import Evaluated

SIGNIFICANT_P = 0.05

_BLEU = "how many words and phrases are as in the reference translation"


def answer(run: RunFacts) -> Finding | None:
    """Returns None where nothing has been translated yet."""
    during = [e for e in run.evaluations if e.bleu is not None and math.isfinite(e.bleu)]
    best = max(during, key=lambda e: (e.bleu or 0.0, -e.step), default=None)
    final = next((s for s in run.record.scored if math.isfinite(s.bleu)), None)
    shown = final or best
    if shown is None:
        return None
    bleu = float(shown.bleu or 0.0)
    evaluations = Evaluations.from_events(run.evaluations)
    leak = leak_of(run.config, evaluations, [s.bleu for s in run.record.scored])
    known = known_test_set(run.config, final.split if final else "validation")
    sentences, evidence = [], []
    if leak:
        sentences.append(_leak_words(run, leak))
        evidence.append(Figure("BLEU that no system reaches", UNREACHED_BLEU, "BLEU"))
        if math.isfinite(leak.gap):
            evidence.append(Figure("gap to the training sample", leak.gap, "nats"))
    for scored in run.record.scored:
        steps = " + ".join(f"{step:,}" for step in scored.steps)
        sentences.append(
            f"On {scored.split} ({count(scored.sentences, 'sentence')}, beam {scored.beam}) the "
            f"weights of step {steps} reach {bleu_words(scored)}."
        )
        evidence += [
            _figure(f"BLEU on {scored.split}", scored, scored.bleu_signature),
            Figure(f"chrF on {scored.split}", scored.chrf, "chrF", note=scored.chrf_signature),
        ]
    if best:
        after = f"after step {best.step:,}"
        sentences.append(f"During training the best on validation was {bleu_words(best)}, {after}.")
        note = "; ".join(filter(None, [after, best.bleu_signature]))
        evidence.append(_figure("best BLEU on validation", best, note))
    if not leak:
        sentences.append(scale_words(bleu, known))
    if known and not leak:
        evidence += [
            Figure(f"BLEU of {s.name}", s.bleu, "BLEU", note=s.source) for s in known.systems
        ]
    if during:
        sentences += _gain_words(during[-1], during, evidence)
    has_interval = shown.bleu_low is not None
    if not has_interval:
        sentences.append(
            "Without an interval, which older records lack, small differences mean little."
        )
    sentences.append(f"BLEU, from 0 to 100, is {_BLEU}.")
    confidence: Confidence = "high" if has_interval and not leak else "low"
    test_sets = [s.split for s in run.record.scored if s.test_place is not None]
    on = f" on {final.split}" if final and len(test_sets) > 1 else ""
    return Finding(
        bleu_words(shown) + on,
        confidence,
        " ".join(sentences),
        evidence,
        _leak_advice(run, final.split if final else "validation")
        if leak
        else _score_the_test_set(run, final),
        _plain(bleu, known, leak, on),
    )


def _leak_words(run: RunFacts, leak: Leak) -> str:
    gap = ""
    if math.isfinite(leak.gap):
        gap = (
            f", and the loss on validation is {abs(leak.gap):.3f} nats "
            f"{'above' if leak.gap >= 0 else 'below'} that on the training sample"
        )
    dropped = "Preparation dropped training pairs that are also held out, but not those with the "
    dropped += "same source in other words"
    if not run.config.cleaning.drop_leaks:
        dropped = "Preparation was told to keep training pairs that are also held out "
        dropped += "(cleaning.drop_leaks = false)"
    return (
        f"Too good to be true: {leak.bleu:.1f} BLEU is more than any system reaches on text that "
        f"people wrote{gap}. Probably the held-out pairs, or nearly the same ones, are in the "
        f"training set as well; only text of very few patterns gives such scores without that. "
        f"{dropped}."
    )


def _leak_advice(run: RunFacts, split: str) -> list[Advice]:
    return [
        find_leak(run, split, "held-out sentences must not be among them"),
        *without_leaks(run, "only then the scores tell how good it is"),
    ]


def _score_the_test_set(run: RunFacts, final: ScoredSplit | None) -> list[Advice]:
    """Returns how to get the final score, of a run that has ended well and has a test set."""
    is_finished = bool(run.attempts) and run.attempts[-1].state == "finished"
    kept = best_kept(run)
    if final or not is_finished or not run.config.data.test or kept is None:
        return []
    if trained.answer(run).verdict != "yes":
        return []
    words = ["dragoman", "evaluate", str(run.record.directory.root)]
    if kept.name != run.record.best_checkpoint:
        words += ["--checkpoint", str(kept.step)]
    return [
        Advice(
            "For a figure to report, score the test set with a beam: so far only validation was "
            "translated, which also chose the checkpoint.",
            shlex.join(words),
        )
    ]


def _plain(bleu: float, known: KnownTestSet | None, leak: Leak | None, on: str) -> str:
    if leak:
        return (
            "The score is too good to be true: the test sentences were probably part of the "
            "training."
        )
    points = f"The translations score {bleu:.0f} of 100 points{on}"
    if known:
        return f"{points}, {place_words(bleu, known)}."
    return f"{points}, which mostly means: {grade_of(bleu)}."


def bleu_words(scored: ScoredSplit | Evaluated) -> str:
    """39.0 BLEU (38.1 to 39.9)"""
    if scored.bleu_low is None or scored.bleu_high is None:
        return f"{scored.bleu:.1f} BLEU"
    return f"{scored.bleu:.1f} BLEU ({scored.bleu_low:.1f} to {scored.bleu_high:.1f})"


def _gain_words(last: Evaluated, during: Sequence[Evaluated], evidence: list[Figure]) -> list[str]:
    """Compares the newest evaluation with the best one before it."""
    before = next((e for e in during if e.step == last.compared_step), None)
    p = last.bleu_gain_p
    if p is None or before is None or before.bleu is None or last.bleu is None:
        return []
    gain = last.bleu - before.bleu
    note = f"step {before.step:,}, p = {p:.3f}"
    evidence.append(Figure("BLEU against the best before", gain, "BLEU", note=note))
    return [
        f"The newest evaluation, after step {last.step:,}, is {abs(gain):.1f} BLEU "
        f"{'above' if gain >= 0 else 'below'} the best before it, of step {before.step:,}: "
        f"{'' if p < SIGNIFICANT_P else 'no '}more than the choice of sentences explains "
        f"(paired resampling, p = {p:.2g})."
    ]


def _figure(name: str, scored: ScoredSplit | Evaluated, note: str) -> Figure:
    return Figure(name, scored.bleu, "BLEU", scored.bleu_low, scored.bleu_high, note)
