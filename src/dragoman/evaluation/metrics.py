"""BLEU, chrF and TER as sacreBLEU computes them, of many choices of sentences at once. No torch.

Each of them depends on the sums of a few counts over the sentences and on nothing else. Counts and
signatures are sacreBLEU's own; the score is computed here from the sums, along the last axis of an
array, since resampling needs a thousand scores and sacreBLEU computes one at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sacrebleu.metrics.base import Metric as SacrebleuMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

Counts: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""A row a sentence; their sums are all that the score depends on."""
Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

_ORDERS = 4
"""BLEU counts the two lengths, then n-grams of 1 to 4 tokens in both texts and in one."""
_CHRF_BETA = 2


@dataclass(frozen=True)
class Metric:
    name: str
    implementation: SacrebleuMetric
    score_of_sums: Callable[[Counts], Numbers]
    higher_is_better: bool = True

    @property
    def signature(self) -> str:
        """Says with which tokens and settings it is computed; known after the first counts."""
        return str(self.implementation.get_signature())

    def counts(self, translations: Sequence[str], references: Sequence[str]) -> Counts:
        # Where sacreBLEU's own tests take them from; its public functions would take twice as long.
        found = self.implementation._extract_corpus_statistics(
            list(translations), [list(references)]
        )
        return np.array(found, dtype=np.float64)

    def score(self, counts: Counts) -> float:
        """Returns the score of the whole set."""
        return float(self.score_of_sums(counts.sum(axis=0)))

    def sentence_scores(self, counts: Counts) -> Numbers:
        """Returns the score of each sentence on its own."""
        return self.score_of_sums(counts)


def bleu_for(target_language: str) -> Metric:
    """Returns BLEU with the tokenization of the language, on text as a reader sees it."""
    # `force` only silences advice about text that looks tokenized; it changes no figure.
    return Metric("BLEU", BLEU(trg_lang=target_language, force=True), _bleu)


def bleu_of_tokens() -> Metric:
    """Returns BLEU of text whose tokens stand between spaces already."""
    return Metric("BLEU of tokens", BLEU(tokenize="none", force=True), _bleu)


def chrf() -> Metric:
    return Metric("chrF", CHRF(), _chrf)


def ter() -> Metric:
    return Metric("TER", TER(), _ter, higher_is_better=False)


def _bleu(sums: Counts) -> Numbers:
    """Returns BLEU, smoothed as sacreBLEU does it."""
    length, reference = sums[..., 0], sums[..., 1]
    correct, total = sums[..., 2 : 2 + _ORDERS], sums[..., 2 + _ORDERS :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(length < reference, np.exp(1 - reference / length), 1.0)
        halvings = np.cumsum((correct == 0) & (total > 0), axis=-1)
        matched = np.where(correct > 0, correct, 0.5**halvings)
        logs = np.log(matched / total).mean(axis=-1)
        scores = 100 * brevity * np.exp(logs)
    has_score = (length > 0) & correct.any(axis=-1) & (total > 0).all(axis=-1)
    return np.where(has_score, scores, 0.0)


def _chrf(sums: Counts) -> Numbers:
    """Returns the F-score of mean precision and recall over the orders that both texts have."""
    translated, reference, matched = (sums[..., part::3] for part in range(3))
    counts = (translated > 0) & (reference > 0)
    orders = np.maximum(counts.sum(axis=-1), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(counts, matched / translated, 0.0).sum(axis=-1) / orders
        recall = np.where(counts, matched / reference, 0.0).sum(axis=-1) / orders
        weight = _CHRF_BETA**2
        scores = 100 * (1 + weight) * precision * recall / (weight * precision + recall)
    return np.where(precision + recall > 0, scores, 0.0)


def _ter(sums: Counts) -> Numbers:
    """Returns edits per word of the reference, in percent."""
    edits, words = sums[..., 0], sums[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(words > 0, 100 * edits / words, np.where(edits > 0, 100.0, 0.0))
