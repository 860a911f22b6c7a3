import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from dragoman.evaluation import significance
from dragoman.evaluation.metrics import Counts, bleu_for, chrf, ter
from dragoman.evaluation.significance import (
    mean_difference,
    mean_interval,
    mean_score,
    score_difference,
    score_interval,
)

BLEU_METRIC = bleu_for("de")

WORDS = [f"w{number}" for number in range(300)]


def sentences(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(1, 20))) for _ in range(count)]


def worsened(texts: list[str], share: float, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [
        " ".join(drawn.choice(WORDS) if drawn.random() < share else word for word in text.split())
        for text in texts
    ]


def counts_of(translations: list[str], references: list[str]) -> Counts:
    return BLEU_METRIC.counts(translations, references)


@pytest.mark.parametrize("block", [1 << 22, 1000])
def test_the_interval_is_that_of_sacrebleu_whatever_is_drawn_at_once(block, monkeypatch):
    monkeypatch.setattr(significance, "_BLOCK", block)
    references = sentences(200, 1)
    translations = worsened(references, 0.3, 2)
    expected = BLEU(force=True).corpus_score(translations, [references], n_bootstrap=1000)
    low, high = score_interval(BLEU_METRIC, counts_of(translations, references))
    assert (high - low) / 2 == pytest.approx(expected._ci, abs=1e-4)  # it sums in fp32
    assert low < expected.score < high


def test_a_clear_gain_is_significant_and_the_same_text_never():
    references = sentences(300, 3)
    worse, better = worsened(references, 0.5, 4), worsened(references, 0.3, 5)
    counts = counts_of(better, references)
    gain = score_difference(BLEU_METRIC, counts_of(worse, references), counts)
    assert gain.p < 0.01
    assert 0 < gain.low < gain.gain < gain.high
    loss = score_difference(BLEU_METRIC, counts, counts_of(worse, references))
    assert loss.gain == -gain.gain
    assert loss.p == gain.p
    assert score_difference(BLEU_METRIC, counts, counts).p == 1.0


def test_equally_good_systems_differ_significantly_about_once_in_twenty():
    references = sentences(150, 6)
    found = [
        score_difference(
            BLEU_METRIC,
            counts_of(worsened(references, 0.4, 2 * n), references),
            counts_of(worsened(references, 0.4, 2 * n + 1), references),
        ).p
        for n in range(10, 110)
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.12


def test_sets_of_different_size_are_not_compared():
    references = sentences(4, 7)
    with pytest.raises(ValueError, match="4 sentences cannot be paired with 3"):
        score_difference(
            BLEU_METRIC,
            counts_of(references, references),
            counts_of(references[:3], references[:3]),
        )


def runs_of(references: list[str], share: float, *seeds: int) -> list[Counts]:
    return [counts_of(worsened(references, share, seed), references) for seed in seeds]


def test_the_mean_over_runs_is_that_of_their_scores():
    references = sentences(100, 8)
    before, now = runs_of(references, 0.4, 1, 2), runs_of(references, 0.3, 3, 4)
    scores = [
        BLEU(force=True).corpus_score(worsened(references, 0.4, seed), [references]).score
        for seed in (1, 2)
    ]
    assert mean_score(BLEU_METRIC, before) == pytest.approx(np.mean(scores))
    low, high = mean_interval(BLEU_METRIC, before)
    assert low < mean_score(BLEU_METRIC, before) < high
    difference = mean_difference(BLEU_METRIC, before, now)
    alone = [score_difference(BLEU_METRIC, *pair).gain for pair in zip(before, now, strict=True)]
    assert difference.gain == pytest.approx(np.mean(alone))


def test_more_runs_show_a_difference_that_one_is_too_few_for():
    references = sentences(100, 9)
    before, now = runs_of(references, 0.42, *range(8)), runs_of(references, 0.40, *range(8, 16))
    widths = []
    for count in (1, 8):
        found = mean_difference(BLEU_METRIC, before[:count], now[:count])
        widths.append(found.high - found.low)
    assert widths[1] < 0.6 * widths[0]


def test_equally_good_systems_of_several_runs_differ_about_once_in_twenty():
    references = sentences(50, 10)
    found = [
        mean_difference(
            BLEU_METRIC,
            runs_of(references, 0.4, *range(6 * n, 6 * n + 3)),
            runs_of(references, 0.4, *range(6 * n + 3, 6 * n + 6)),
        ).p
        for n in range(10, 40)
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.17


def test_runs_of_different_sentences_are_not_compared():
    references = sentences(4, 11)
    whole, part = counts_of(references, references), counts_of(references[:3], references[:3])
    with pytest.raises(ValueError, match="4 sentences cannot be paired with 3"):
        mean_difference(BLEU_METRIC, [whole, whole], [whole, part])


@pytest.mark.parametrize("metric", [chrf(), ter()], ids=lambda metric: metric.name)
def test_intervals_of_other_metrics_are_those_of_sacrebleu(metric):
    references = sentences(60, 12)
    translations = worsened(references, 0.3, 13)
    expected = metric.implementation.corpus_score(translations, [references], n_bootstrap=1000)
    low, high = score_interval(metric, metric.counts(translations, references))
    assert (high - low) / 2 == pytest.approx(expected._ci, abs=1e-3)
    assert low < expected.score < high
