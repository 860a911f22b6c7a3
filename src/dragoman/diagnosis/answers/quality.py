"""How good are the translations, and is the last gain a real one?

Verdicts: BLEU and its interval, "39.0 BLEU (38.1 to 39.9)".
"""

import math
from collections.abc import Sequence

from dragoman.diagnosis.findings import Confidence, Figure, Finding
from dragoman.diagnosis.phrasing import count
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.evaluation.scores import ScoredSplit
from dragoman.telemetry.events import Evaluated

SIGNIFICANT_P = 0.05


def answer(run: RunFacts) -> Finding | None:
    """Returns None where nothing has been translated yet."""
    during = [e for e in run.evaluations if e.bleu is not None and math.isfinite(e.bleu)]
    best = max(during, key=lambda e: (e.bleu or 0.0, -e.step), default=None)
    final = next((s for s in run.record.scored if math.isfinite(s.bleu)), None)
    shown = final or best
    if shown is None:
        return None
    sentences, evidence = [], []
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
    if during:
        sentences += _gain_words(during[-1], during, evidence)
    has_interval = shown.bleu_low is not None
    if not has_interval:
        sentences.append(
            "Without an interval, which older records lack, small differences mean little."
        )
    confidence: Confidence = "high" if has_interval else "low"
    advice = "" if final else "Run dragoman evaluate to score the test set with a beam."
    return Finding(bleu_words(shown), confidence, " ".join(sentences), evidence, advice)


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
