"""How far the choice of sentences alone moves BLEU: intervals and paired tests. Without torch.

Sentences are drawn again, as many as there are and with repetition, as sacreBLEU does it and with
its seed; but BLEU of all draws is computed at once from sums of each sentence's counts, which takes
a tenth of a second where sacreBLEU's own loop takes a second.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from sacrebleu.metrics.bleu import BLEU

Counts: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""A row a sentence: length of the translation and of the reference, n-grams of 1 to 4 pieces that
are in both, and in the translation. Their sums are all that BLEU depends on."""
Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

DRAWS = 1000
SEED = 12345
"""sacreBLEU's own."""
_ORDERS = 4
_BLOCK = 1 << 22
"""Sentences drawn at once: bounds memory, whatever the size of the set."""


class BleuInterval(NamedTuple):
    """The 95 % interval of a BLEU score."""

    low: float
    high: float


class BleuDifference(NamedTuple):
    """The difference in BLEU of the second translations to the first."""

    gain: float
    low: float
    """With `high` the 95 % interval of the gain."""
    high: float
    p: float
    """How probable a difference of this size, in either direction, is by the choice of sentences
    alone."""


def bleu_for(target_language: str) -> BLEU:
    """Returns sacreBLEU with the tokenization of the language."""
    # `force` only silences advice about text that looks tokenized; it changes no figure.
    return BLEU(trg_lang=target_language, force=True)


def sentence_counts(bleu: BLEU, translations: Sequence[str], references: Sequence[str]) -> Counts:
    # Where sacreBLEU's own tests take them from; its public functions would take twice as long.
    found = bleu._extract_corpus_statistics(list(translations), [list(references)])
    return np.array(found, dtype=np.float64).reshape(-1, 2 + 2 * _ORDERS)


def bleu_interval(counts: Counts) -> BleuInterval:
    return mean_bleu_interval([counts])


def bleu_difference(before: Counts, now: Counts) -> BleuDifference:
    """Returns the paired difference of two systems on the same sentences, in the same order."""
    return mean_bleu_difference([before], [now])


def mean_bleu(runs: Sequence[Counts]) -> float:
    """Returns the mean BLEU of several runs, such as those of different seeds."""
    return float(np.mean([_bleu(counts.sum(axis=0)) for counts in runs]))


def mean_bleu_interval(runs: Sequence[Counts]) -> BleuInterval:
    """Returns the interval of `mean_bleu`; each draw takes the same sentences of all runs."""
    return BleuInterval(*_middle_95(_drawn_mean(_drawn_bleu(*runs))))


def mean_bleu_difference(before: Sequence[Counts], now: Sequence[Counts]) -> BleuDifference:
    """Returns the paired difference in mean BLEU of two systems, each trained several times.

    All runs have translated the same sentences, in the same order, and each draw takes the same
    sentences of all of them. What another seed would change is not in the interval, nor in p.
    """
    sizes = {len(counts): None for counts in (*before, *now)}
    if len(sizes) > 1:
        first, other = list(sizes)[:2]
        raise ValueError(f"{first} sentences cannot be paired with {other}")
    gain = mean_bleu(now) - mean_bleu(before)
    drawn = _drawn_bleu(*before, *now)
    gains = _drawn_mean(drawn[len(before) :]) - _drawn_mean(drawn[: len(before)])
    as_far = np.abs(gains - gains.mean()) >= abs(gain)
    # The observed one counts as a draw, so that no difference is ever called impossible.
    p = (np.count_nonzero(as_far) + 1) / (DRAWS + 1)
    return BleuDifference(gain, *_middle_95(gains), float(p))


def _drawn_bleu(*systems: Counts) -> list[Numbers]:
    """Returns BLEU of each system in each draw, which takes the same sentences of all."""
    found: list[list[Numbers]] = [[] for _ in systems]
    for times in _draws(len(systems[0])):
        for counts, blocks in zip(systems, found, strict=True):
            blocks.append(_bleu(times @ counts))
    return [np.concatenate(blocks) for blocks in found]


def _drawn_mean(runs: Sequence[Numbers]) -> Numbers:
    """Returns the mean over runs in each draw."""
    mean: Numbers = np.stack(runs).mean(axis=0)
    return mean


def _draws(sentences: int) -> Iterator[Counts]:
    """Yields how often each sentence is drawn: a row a draw, some rows at a time."""
    random = np.random.default_rng(SEED)
    rows = max(1, _BLOCK // max(1, sentences))
    for begin in range(0, DRAWS, rows):
        number = min(rows, DRAWS - begin)
        drawn = random.choice(sentences, size=(number, sentences), replace=True)
        drawn += sentences * np.arange(number)[:, None]
        times = np.bincount(drawn.ravel(), minlength=number * sentences)
        yield times.reshape(number, sentences).astype(np.float64)


def _bleu(sums: Counts) -> Numbers:
    """Returns BLEU from sums over sentences, along the last axis; smoothed as sacreBLEU does it."""
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


def _middle_95(values: Numbers) -> tuple[float, float]:
    ordered = np.sort(values)
    outside = len(ordered) // 40
    return float(ordered[outside]), float(ordered[len(ordered) - outside - 1])
