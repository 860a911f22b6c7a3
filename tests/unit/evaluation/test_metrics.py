"""Scores from sums of counts are those of sacreBLEU's own functions."""

import random

import pytest

from dragoman.evaluation.metrics import bleu_for, bleu_of_tokens, chrf, ter

METRICS = [bleu_for("de"), bleu_of_tokens(), chrf(), ter()]


def by_name(metric):
    return metric.name


@pytest.mark.parametrize("metric", METRICS, ids=by_name)
@pytest.mark.parametrize(
    ("translations", "references"),
    [
        (["the cat sat on a mat today"], ["the cat sat on the mat today"]),
        (["the cat"], ["the cat sat on the mat"]),  # no 3-gram at all
        (["a b c d e"], ["a b x d e"]),  # no 3-gram in common: smoothed
        (["a x c y e"], ["a b c d e"]),  # no 2-gram either
        (["nothing at all here"], ["a b c d e"]),
        ([""], ["a b c d e"]),
        (["a b c d e f g"], ["a b c d e"]),  # longer: no brevity penalty
        (["x"], ["y"]),
        (["", "ein Haus"], ["ein Baum", "ein Haus"]),
        (["سلام", "🙂 ok"], ["سلام عليكم", "ok 🙂"]),
    ],
)
def test_a_score_from_counts_is_that_of_sacrebleu(metric, translations, references):
    expected = metric.implementation.corpus_score(translations, [references]).score
    assert metric.score(metric.counts(translations, references)) == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS, ids=by_name)
def test_so_is_that_of_many_sentences(metric):
    drawn = random.Random(1)
    words = [f"w{number}" for number in range(50)]
    references = [" ".join(drawn.choices(words, k=drawn.randint(1, 30))) for _ in range(40)]
    translations = [
        " ".join(word for word in reference.split() if drawn.random() < 0.8)
        for reference in references
    ]
    expected = metric.implementation.corpus_score(translations, [references]).score
    assert metric.score(metric.counts(translations, references)) == pytest.approx(expected)


def test_the_signature_names_tokens_and_version():
    metric = bleu_for("zh")
    metric.counts(["你好"], ["你好"])
    assert "tok:zh" in metric.signature
    assert "version:" in metric.signature


def test_sentences_have_scores_of_their_own():
    metric = chrf()
    counts = metric.counts(["ein Haus", "xyz"], ["ein Haus", "ein Haus"])
    assert metric.sentence_scores(counts).tolist() == pytest.approx([100.0, 0.0])
