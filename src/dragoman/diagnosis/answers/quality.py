"""How good are the translations, and is the last step up a real one? Unasked.

Verdicts: BLEU and its interval, "39.0 BLEU (38.1 to 39.9)".
"""

import math
from collections.abc import Sequence

from dragoman.diagnosis.findings import Confidence, Figure, Finding
from dragoman.diagnosis.phrasing import count
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.timeline import History
from dragoman.evaluation.scores import ScoredSplit
from dragoman.telemetry.events import Evaluated

KEY = "quality"
QUESTION = "How good are the translations, and how sure is that?"

SIGNIFICANT_P = 0.05


def finding(record: RunRecord, history: History) -> Finding | None:
    """None: nothing has been translated yet."""
    during = [e for e in history.evaluations if e.bleu is not None and math.isfinite(e.bleu)]
    best = max(during, key=lambda e: (e.bleu or 0.0, -e.step), default=None)
    final = next((s for s in record.scored if math.isfinite(s.bleu)), None)
    if best is None and final is None:
        return None
    sentences, evidence = [], []
    verdict = ""
    has_interval = False
    for scored in record.scored:
        words = interval_words(scored.bleu, scored.bleu_low, scored.bleu_high)
        sentences.append(
            f"On {scored.split} ({count(scored.sentences, 'sentence')}, beam {scored.beam}) the "
            f"weights of step {_steps(scored)} reach {words}."
        )
        evidence.append(_figure(f"BLEU on {scored.split}", scored, scored.bleu_signature))
        evidence.append(
            Figure(f"chrF on {scored.split}", scored.chrf, "chrF", note=scored.chrf_signature)
        )
    if best is not None and best.bleu is not None:
        words = interval_words(best.bleu, best.bleu_low, best.bleu_high)
        sentences.append(
            f"During training the best on validation was {words}, after step {best.step:,}."
        )
        note = "; ".join(filter(None, [f"after step {best.step:,}", best.bleu_signature]))
        evidence.append(_figure("best BLEU on validation", best, note))
        verdict, has_interval = words, best.bleu_low is not None
    if final is not None:
        verdict = interval_words(final.bleu, final.bleu_low, final.bleu_high)
        has_interval = final.bleu_low is not None
    sentences += _gain_words(during, evidence)
    if not has_interval:
        sentences.append(
            "Without an interval, which older records lack, small differences mean little."
        )
    confidence: Confidence = "high" if has_interval else "low"
    advice = "" if final else "Run dragoman evaluate to score the test set with a beam."
    return Finding(KEY, QUESTION, verdict, confidence, " ".join(sentences), evidence, advice)


def interval_words(bleu: float, low: float | None, high: float | None) -> str:
    """39.0 BLEU (38.1 to 39.9)"""
    if low is None or high is None:
        return f"{bleu:.1f} BLEU"
    return f"{bleu:.1f} BLEU ({low:.1f} to {high:.1f})"


def _gain_words(during: Sequence[Evaluated], evidence: list[Figure]) -> list[str]:
    """Of the newest evaluation against the best one before it."""
    last = during[-1] if during else None
    if last is None or last.bleu is None or last.bleu_gain_p is None or last.compared_step is None:
        return []
    before = next((e for e in during if e.step == last.compared_step), None)
    if before is None or before.bleu is None:
        return []
    gain = last.bleu - before.bleu
    p = last.bleu_gain_p
    evidence.append(
        Figure(
            "BLEU against the best before", gain, "BLEU", note=f"step {before.step:,}, p = {p:.3f}"
        )
    )
    means = (
        "more than the choice of sentences explains"
        if p < SIGNIFICANT_P
        else "no more than the choice of sentences explains"
    )
    return [
        f"The newest evaluation, after step {last.step:,}, is {abs(gain):.1f} BLEU "
        f"{'above' if gain >= 0 else 'below'} the best before it, of step {before.step:,}: {means} "
        f"(paired resampling, p = {p:.2g})."
    ]


def _figure(name: str, scored: ScoredSplit | Evaluated, note: str) -> Figure:
    return Figure(name, scored.bleu, "BLEU", scored.bleu_low, scored.bleu_high, note)


def _steps(scored: ScoredSplit) -> str:
    return " + ".join(f"{step:,}" for step in scored.steps)
