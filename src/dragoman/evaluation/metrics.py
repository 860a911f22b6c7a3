"""BLEU and chrF as sacreBLEU computes them, with the signatures that make them comparable."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics.chrf import CHRF

from dragoman.evaluation.significance import bleu_for, bleu_interval, sentence_counts


class Scores(NamedTuple):
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    bleu_low: float
    """With bleu_high the 95 % interval, by resampling sentences."""
    bleu_high: float


def score(translations: Sequence[str], references: Sequence[str], target_language: str) -> Scores:
    """Scores detokenized translations against raw references; the language sets the tokenizer."""
    bleu, chrf = bleu_for(target_language), CHRF()
    interval = bleu_interval(sentence_counts(bleu, translations, references))
    return Scores(
        bleu=bleu.corpus_score(list(translations), [list(references)]).score,
        chrf=chrf.corpus_score(list(translations), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        bleu_low=interval.low,
        bleu_high=interval.high,
    )
