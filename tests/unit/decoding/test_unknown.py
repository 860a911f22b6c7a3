from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerSettings
from dragoman.decoding.unknown import (
    Aside,
    Run,
    copies,
    insertions,
    set_aside,
    spans_of_whole_words,
    torn_words,
    unknown_runs,
)
from dragoman.tokenizer import learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus"] * 5
TOKENIZER = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))


def runs_of(text):
    return unknown_runs(text, TOKENIZER.spans(text), TOKENIZER.unknown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat", []),
        ("the 👍👍 cat", ["👍👍"]),
        ("👨‍👩‍👧 the 你好!", ["👨‍👩‍👧", "你好!"]),
        ("Ⅻ the ﬁ", ["Ⅻ", "ﬁ"]),
        ("שלום עולם", ["שלום", "עולם"]),
    ],
)
def test_runs_are_the_characters_that_the_tokenizer_lacks(text, expected):
    runs = runs_of(text)
    assert [text[run.begin : run.end] for run in runs] == expected
    pieces = TOKENIZER.spans(text)
    assert all(pieces[run.piece].piece == TOKENIZER.unknown for run in runs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat", []),
        ("the Łóthź sees", ["Łóthź"]),
        ("sees Łath, thź the 👍", ["Łath", "thź"]),
        ("the👍 cat", []),  # no letter
        ("the 你好cat", []),  # words without spaces
        ("Łth-thŁ", ["Łth", "thŁ"]),
        ("the ọ́the cat", ["ọ́the"]),  # NFC has no single character for this letter
        ("the cate\u0301the cat", ["cate\u0301the"]),  # and has one for this
    ],
)
def test_words_with_unknown_letters_stay_whole(text, expected):
    runs = runs_of(text)
    words = torn_words(text, runs)
    assert [text[begin:end] for begin, end in words] == expected
    spans = spans_of_whole_words(text, words, runs, TOKENIZER.spans)
    whole = unknown_runs(text, spans, TOKENIZER.unknown)
    copied = [text[run.begin : run.end] for run in whole]
    assert all(any(word in run for run in copied) for word in expected)
    assert [spans[0].begin, spans[-1].end] == [0, len(text)]
    assert all(one.end == other.begin for one, other in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("👍 the 🎉 cat 👍 🎉", Aside("👍 ", "the 🎉 cat", " 👍 🎉")),
        ("👍the", Aside("👍", "the", "")),
        ("the cat", Aside("", "the cat", "")),
        ("👍 🎉", Aside("", "", "👍 🎉")),
    ],
)
def test_runs_at_the_ends_are_set_aside(text, expected):
    assert set_aside(text, runs_of(text)) == expected


@given(st.text(alphabet="thecat 👍🎉", max_size=12), st.booleans())
def test_nothing_is_lost_and_the_rest_has_no_run_at_its_ends(text, keep_begin):
    text = text.strip()
    aside = set_aside(text, runs_of(text), keep_begin)
    assert aside.before + aside.rest + aside.after == text
    assert aside.rest == aside.rest.strip()
    inner = runs_of(aside.rest)
    if keep_begin:
        assert aside.before == ""
    else:
        assert all(run.begin > 0 for run in inner)
    if aside.rest and not keep_begin:
        assert all(run.end < len(aside.rest) for run in inner)


FIRST, SECOND = Run(0, 1, 0), Run(4, 5, 2)


def test_unknown_pieces_are_copies_of_what_they_attend_to_and_no_run_comes_twice():
    attention = np.array([[0.6, 0, 0.4], [0.9, 0, 0.1], [0.5, 0, 0.5]], dtype=np.float32)
    assert copies([0, 1], [FIRST, SECOND], attention) == {1: FIRST, 0: SECOND}
    assert copies([0, 1, 2], [FIRST, SECOND], attention) == {1: FIRST, 2: SECOND}
    assert copies([1], [FIRST, SECOND], attention) == {1: FIRST}
    assert copies([0, 1], [], attention) == {}
    assert copies([0, 1], [FIRST, SECOND], None) == {0: FIRST, 1: SECOND}


def test_lost_runs_come_behind_the_word_that_attends_to_them_most():
    surfaces = ["die", " Kat", "ze", " sieht"]
    attention = np.zeros((4, 3), dtype=np.float32)
    attention[1, 0] = attention[3, 2] = 1.0
    assert insertions([FIRST, SECOND], surfaces, 0, attention) == {3: [FIRST], 4: [SECOND]}
    assert insertions([FIRST], surfaces, 3, attention) == {4: [FIRST]}
    assert insertions([FIRST], surfaces, 4, attention) == {4: [FIRST]}
    assert insertions([FIRST, SECOND], surfaces, 0, None) == {4: [FIRST, SECOND]}
    assert insertions([FIRST], [], 0, np.zeros(0, dtype=np.float32)) == {0: [FIRST]}


def test_a_run_does_not_tear_a_term_apart():
    attention = np.array([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], dtype=np.float32)
    run, surfaces = Run(0, 1, 1), ["vier", " fünf", " zwei"]
    assert insertions([run], surfaces, 0, attention) == {1: [run]}
    assert insertions([run], surfaces, 0, attention, {1}) == {2: [run]}
