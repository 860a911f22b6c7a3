"""How far the choice of sentences alone moves a score: intervals and paired tests. Without torch.

Sentences are drawn again, as many as there are and with repetition, as sacreBLEU does it and with
its seed; but scores of all draws are computed at once from sums of each sentence's counts, which
takes a tenth of a second where sacreBLEU's own loop takes a second.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.evaluation.metrics import Counts, Metric, Numbers

DRAWS = 1000
SEED = 12345
"""sacreBLEU's own."""
_BLOCK = 1 << 22
"""Sentences drawn at once: bounds memory, whatever the size of the set."""


class ScoreInterval(NamedTuple):
    """The 95 % interval of a score."""

    low: float
    high: float


class ScoreDifference(NamedTuple):
    """The difference of the second translations to the first."""

    gain: float
    low: float
    """With `high` the 95 % interval of the gain."""
    high: float
    p: float
    """How probable a difference of this size, in either direction, is by the choice of sentences
    alone."""


def score_interval(metric: Metric, counts: Counts) -> ScoreInterval:
    return mean_interval(metric, [counts])


def score_difference(metric: Metric, before: Counts, now: Counts) -> ScoreDifference:
    """Returns the paired difference of two systems on the same sentences, in the same order."""
    return mean_difference(metric, [before], [now])


def mean_score(metric: Metric, runs: Sequence[Counts]) -> float:
    """Returns the mean score of several runs, such as those of different seeds."""
    return float(np.mean([metric.score(counts) for counts in runs]))


def mean_interval(metric: Metric, runs: Sequence[Counts]) -> ScoreInterval:
    """Returns the interval of `mean_score`; each draw takes the same sentences of all runs."""
    return ScoreInterval(*middle_95(_drawn_mean(_drawn_scores(metric, *runs))))


def mean_difference(
    metric: Metric, before: Sequence[Counts], now: Sequence[Counts]
) -> ScoreDifference:
    """Returns the paired difference in the mean score of two systems, each trained several times.

    All runs have translated the same sentences, in the same order, and each draw takes the same
    sentences of all of them. What another seed would change is not in the interval, nor in p.
    """
    sizes = {len(counts): None for counts in (*before, *now)}
    if len(sizes) > 1:
        first, other = list(sizes)[:2]
        raise ValueError(f"{first} sentences cannot be paired with {other}")
    gain = mean_score(metric, now) - mean_score(metric, before)
    drawn = _drawn_scores(metric, *before, *now)
    gains = _drawn_mean(drawn[len(before) :]) - _drawn_mean(drawn[: len(before)])
    as_far = np.abs(gains - gains.mean()) >= abs(gain)
    # The observed one counts as a draw, so that no difference is ever called impossible.
    p = (np.count_nonzero(as_far) + 1) / (DRAWS + 1)
    return ScoreDifference(gain, *middle_95(gains), float(p))


def _drawn_scores(metric: Metric, *systems: Counts) -> list[Numbers]:
    """Returns the score of each system in each draw, which takes the same sentences of all."""
    found: list[list[Numbers]] = [[] for _ in systems]
    for times in draws(len(systems[0])):
        for counts, blocks in zip(systems, found, strict=True):
            blocks.append(metric.score_of_sums(times @ counts))
    return [np.concatenate(blocks) for blocks in found]


def _drawn_mean(runs: Sequence[Numbers]) -> Numbers:
    """Returns the mean over runs in each draw."""
    mean: Numbers = np.stack(runs).mean(axis=0)
    return mean


def draws(sentences: int) -> Iterator[Counts]:
    """Yields how often each sentence is drawn: a row a draw, some rows at a time."""
    random = np.random.default_rng(SEED)
    rows = max(1, _BLOCK // max(1, sentences))
    for begin in range(0, DRAWS, rows):
        number = min(rows, DRAWS - begin)
        drawn = random.choice(sentences, size=(number, sentences), replace=True)
        drawn += sentences * np.arange(number)[:, None]
        times = np.bincount(drawn.ravel(), minlength=number * sentences)
        yield times.reshape(number, sentences).astype(np.float64)


def middle_95(values: Numbers) -> tuple[float, float]:
    ordered = np.sort(values)
    outside = len(ordered) // 40
    return float(ordered[outside]), float(ordered[len(ordered) - outside - 1])
