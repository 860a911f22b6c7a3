import functools
import io
import sys

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.batches import subword_dropout
from dragoman.batches.merges import DRAWS, Merges
from dragoman.batches.subword_dropout import Growth, SubwordDropout, growth
from dragoman.config import TokenizerSettings
from dragoman.corpus.phrasebook import sentence_pairs
from dragoman.shards.files import PairIds
from dragoman.tokenizer import Tokenizer, learn_tokenizer

TEXTS = [text for pair in sentence_pairs("train", 300, seed=1) for text in pair]
ODD = [
    "one \N{SNOWMAN} two thr\N{SNOWMAN}ee",
    "Donaudampfschifffahrtsgesellschaftskapitaenswitwe" * 5,
    "a",
    "e e e",
    "\N{SNOWMAN}\N{SNOWMAN}",
    "",
]


@functools.cache
def tokenizer():
    return learn_tokenizer(TEXTS, TokenizerSettings(vocabulary=300))


def dropout(share=0.1, seed=1, pieces=None):
    return SubwordDropout(Merges((pieces or tokenizer()).model, "x"), share, seed)


def drawn(dropout, texts, step=1, micro_batch=0, side="target", widest=sys.maxsize, by=None):
    ids = [np.array(each, np.uint16) for each in (by or tokenizer()).encode(texts)]
    return [r.tolist() for r in dropout.resegment(ids, widest, step, micro_batch, side)]


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("texts", [TEXTS, ODD, ["a"]], ids=["sentences", "odd ones", "one letter"])
def test_the_text_stays_the_same(texts, share):
    usual = tokenizer().encode(texts)
    other = drawn(dropout(share), texts)
    assert tokenizer().decode(other) == tokenizer().decode(usual)
    assert [row[-1] for row in other] == [tokenizer().end] * len(texts)
    assert texts is not TEXTS or sum(map(len, other)) > 1.1 * sum(map(len, usual))


@given(st.lists(st.text("abcde\N{SNOWMAN} tehrn", max_size=30), min_size=1, max_size=8))
def test_any_text_stays_the_same(texts):
    usual = tokenizer().encode(texts)
    other = drawn(dropout(0.5), texts)
    assert tokenizer().decode(other) == tokenizer().decode(usual)


def test_merges_are_dropped_at_the_share():
    """No merge of a word is dropped with probability (1 - share)^merges."""
    word = "window"
    whole = tokenizer().encode([word])[0]
    kept = dropout(0.2)._words[np.array(whole[:-1], np.int32).tobytes()].unchanged_below / DRAWS
    rows = drawn(dropout(0.2), [word] * 20_000)
    share = sum(row == whole for row in rows) / len(rows)
    assert share == pytest.approx(kept, abs=0.02)
    merges = round(np.log(kept) / np.log(0.8))
    assert 2 <= merges <= 6
    assert kept == pytest.approx(0.8**merges, abs=1e-6)


def test_words_are_drawn_apart_from_each_other():
    first, second = (tokenizer().encode([word])[0][:-1] for word in ("window", "summer"))
    rows = drawn(dropout(0.2), ["window summer"] * 20_000)
    unchanged_first = np.array([row[: len(first)] == first for row in rows])
    unchanged_second = np.array([row[-1 - len(second) : -1] == second for row in rows])
    together = (unchanged_first & unchanged_second).mean()
    assert together == pytest.approx(unchanged_first.mean() * unchanged_second.mean(), abs=0.02)


def test_what_is_drawn_follows_from_seed_step_micro_batch_and_side():
    here = drawn(dropout(), TEXTS)
    assert drawn(dropout(), TEXTS) == here
    others = [
        drawn(dropout(seed=2), TEXTS),
        drawn(dropout(), TEXTS, step=2),
        drawn(dropout(), TEXTS, micro_batch=1),
        drawn(dropout(), TEXTS, side="source"),
    ]
    assert all(other != here for other in others)
    assert all(one != other for one in others for other in others if one is not other)


def test_what_was_drawn_before_makes_no_difference(monkeypatch):
    fresh = [drawn(dropout(0.3), TEXTS, step) for step in (7, 3)]
    used = dropout(0.3)
    for step in range(20):
        drawn(used, TEXTS[::-1], step)
    assert [drawn(used, TEXTS, step) for step in (7, 3)] == fresh
    monkeypatch.setattr(subword_dropout, "MOST_REMEMBERED", 7)
    forgetful = dropout(0.3)
    assert [drawn(forgetful, TEXTS, step) for step in (7, 3)] == fresh
    assert len(forgetful._words) <= 7


def test_no_sentence_gets_longer_than_allowed():
    usual = tokenizer().encode(TEXTS)
    widest = max(map(len, usual))
    free, bounded = drawn(dropout(0.5), TEXTS), drawn(dropout(0.5), TEXTS, widest=widest)
    assert max(map(len, free)) > widest == max(map(len, bounded))
    assert tokenizer().decode(bounded) == tokenizer().decode(usual)
    for whole, short in zip(free, bounded, strict=True):
        assert len(whole) > widest or short == whole
    shortest = drawn(dropout(0.5), TEXTS, widest=1)
    assert all(len(s) <= len(u) for s, u in zip(shortest, usual, strict=True))


def foreign(**settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        model_type="bpe",
        minloglevel=2,
        **settings,
    )
    return Tokenizer(model.getvalue())


@pytest.mark.parametrize(
    "settings",
    [
        {"vocab_size": 600, "byte_fallback": True},
        {"vocab_size": 300, "user_defined_symbols": ["the", "."]},
        {"vocab_size": 300, "split_by_whitespace": False},
        {"vocab_size": 300, "treat_whitespace_as_suffix": True},
        {"vocab_size": 300, "add_dummy_prefix": False},
        {"vocab_size": 300, "character_coverage": 0.98},
    ],
    ids=lambda settings: [*settings][-1],
)
def test_models_learned_elsewhere_keep_their_text(settings):
    pieces = foreign(**settings)
    usual = pieces.encode(TEXTS + ODD)
    other = drawn(dropout(0.3, pieces=pieces), TEXTS + ODD, by=pieces)
    assert pieces.decode(other) == pieces.decode(usual)
    assert sum(map(len, other)) > 1.1 * sum(map(len, usual))
    if "user_defined_symbols" in settings:
        symbol = Merges(pieces.model, "x").pieces.index("the")
        count = [sum(row.count(symbol) for row in rows) for rows in (usual, other)]
        assert count[0] == count[1] > 0


def test_the_growth_of_a_sample_is_that_of_the_whole():
    pairs = [PairIds(*ids) for ids in zip(*[iter(tokenizer().encode(TEXTS))] * 2, strict=True)]
    found = growth(pairs, dropout())
    for side, (old, new) in zip(("source", "target"), found, strict=True):
        whole = [getattr(pair, side) for pair in pairs]
        grown = dropout().resegment(whole, sys.maxsize, 5, 0, side)
        assert new / old == pytest.approx(sum(map(len, grown)) / sum(map(len, whole)), rel=0.03)


def test_lengths_are_planned_as_they_are_expected_up_to_the_longest_allowed():
    lengths = np.array([[1, 10], [30, 30], [50, 70]], dtype=np.int32)
    planned = Growth((100, 130), (10, 12)).planned(lengths, longest=60)
    assert planned.tolist() == [[2, 12], [39, 36], [60, 70]]
    assert planned.dtype == np.int32
