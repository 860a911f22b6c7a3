"""Scores translations in every way that a report of a test set needs. Without torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dragoman.evaluation.metrics import Metric, bleu_for, chrf, ter
from dragoman.evaluation.significance import ScoreDifference, score_difference, score_interval

LENGTH_BOUNDS = (10, 20, 30, 50)
"""Words of a reference; the last group has all that are longer."""


class Scores(NamedTuple):
    """What every evaluation during training keeps."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    bleu_low: float
    """With bleu_high the 95 % interval, by resampling sentences."""
    bleu_high: float


@dataclass(frozen=True)
class MetricScore:
    name: str
    score: float
    low: float
    """With `high` the 95 % interval, by resampling sentences."""
    high: float
    signature: str


@dataclass(frozen=True)
class LengthGroup:
    least_words: int
    most_words: int | None
    """None: no bound."""
    sentences: int
    bleu: float
    low: float
    high: float


class Sentence(NamedTuple):
    number: int
    """Counted from 1, the line of the test set."""
    chrf: float


class Compared(NamedTuple):
    """The paired difference in one metric; positive where this system's figure is higher."""

    name: str
    other: float
    difference: ScoreDifference
    is_better: bool | None
    """None: the choice of sentences alone could have made it (p of 0.05 or more)."""


def score(translations: Sequence[str], references: Sequence[str], target_language: str) -> Scores:
    """Scores detokenized translations against raw references; the language sets the tokenizer."""
    bleu = measured(bleu_for(target_language), translations, references)
    chrf_metric = chrf()
    chrf_score = chrf_metric.score(chrf_metric.counts(translations, references))
    return Scores(
        bleu=bleu.score,
        chrf=chrf_score,
        bleu_signature=bleu.signature,
        chrf_signature=chrf_metric.signature,
        bleu_low=bleu.low,
        bleu_high=bleu.high,
    )


def all_metrics(target_language: str) -> list[Metric]:
    return [bleu_for(target_language), chrf(), ter()]


def measured(metric: Metric, translations: Sequence[str], references: Sequence[str]) -> MetricScore:
    counts = metric.counts(translations, references)
    interval = score_interval(metric, counts)
    return MetricScore(metric.name, metric.score(counts), *interval, metric.signature)


def by_length(
    translations: Sequence[str], references: Sequence[str], target_language: str
) -> list[LengthGroup]:
    """Returns BLEU of short and of long sentences; groups without any are left out."""
    metric = bleu_for(target_language)
    counts = metric.counts(translations, references)
    # In tokens of the metric, since some languages have no spaces between words.
    group_of = np.searchsorted(LENGTH_BOUNDS, counts[:, 1])
    found = []
    for group in range(len(LENGTH_BOUNDS) + 1):
        of_group = counts[group_of == group]
        if len(of_group):
            least = LENGTH_BOUNDS[group - 1] + 1 if group else 0
            most = LENGTH_BOUNDS[group] if group < len(LENGTH_BOUNDS) else None
            interval = score_interval(metric, of_group)
            found.append(LengthGroup(least, most, len(of_group), metric.score(of_group), *interval))
    return found


def worst(translations: Sequence[str], references: Sequence[str], most: int) -> list[Sentence]:
    """Returns the sentences that share the fewest characters with their reference.

    By chrF, since BLEU of a single sentence is zero for most short ones.
    """
    metric = chrf()
    scores = metric.sentence_scores(metric.counts(translations, references))
    order = np.argsort(scores, kind="stable")[:most]
    return [Sentence(int(number) + 1, float(scores[number])) for number in order]


def compare(
    ours: Sequence[str], others: Sequence[str], references: Sequence[str], target_language: str
) -> list[Compared]:
    """Compares translations of the same sentences by two systems, sentence by sentence."""
    found = []
    for metric in all_metrics(target_language):
        before, now = (metric.counts(texts, references) for texts in (others, ours))
        difference = score_difference(metric, before, now)
        is_better = (difference.gain > 0) == metric.higher_is_better
        found.append(
            Compared(
                metric.name,
                metric.score(before),
                difference,
                is_better if difference.p < 0.05 else None,
            )
        )
    return found
