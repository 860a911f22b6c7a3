"""BLEU and chrF as sacreBLEU computes them, with the signatures that make them comparable."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


class Scores(NamedTuple):
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score(translations: Sequence[str], references: Sequence[str], target_language: str) -> Scores:
    """Detokenized translations against raw references; the language chooses the tokenization."""
    # `force` only silences advice about text that looks tokenized; it changes no figure.
    bleu, chrf = BLEU(trg_lang=target_language, force=True), CHRF()
    return Scores(
        bleu=bleu.corpus_score(list(translations), [list(references)]).score,
        chrf=chrf.corpus_score(list(translations), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
