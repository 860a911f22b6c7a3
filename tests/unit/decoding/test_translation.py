import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.splitting import Piece
from dragoman.decoding.translation import (
    Candidate,
    Rendered,
    Translation,
    distinct,
    joined,
    k_best,
    words_of,
)

SCORES = st.lists(st.integers(-50, 0).map(float), min_size=1, max_size=5).map(
    lambda scores: sorted(scores, reverse=True)
)


@given(st.lists(SCORES, max_size=4), st.integers(1, 8))
def test_the_best_choices_are_those_with_the_largest_sums(scores, count):
    def total(choice):
        return sum(of_one[n] for of_one, n in zip(scores, choice, strict=True))

    everything = itertools.product(*(range(len(of_one)) for of_one in scores))
    expected = sorted(map(total, everything), reverse=True)[:count]
    found = k_best(scores, count)
    assert [total(choice) for choice in found] == expected
    assert len(set(found)) == len(found)


def test_many_pieces_are_no_matter():
    choices = k_best([[0.0, -1.0, -2.0]] * 5000, 100)
    assert len(choices) == 100
    assert choices[0] == (0,) * 5000


def test_of_equal_texts_the_first_counts():
    rendered = [Rendered("a", -1.0), Rendered("b", -2.0), Rendered("a", -3.0), Rendered("c", -4.0)]
    assert distinct(rendered, 2) == rendered[:2]
    assert distinct(rendered, 5) == [*rendered[:2], rendered[3]]


def test_characters_become_words_from_zero():
    assert words_of(((0, 0), (1, 1), (5, 3)), "one  two", "a bc") == ((0, 0), (1, 1))
    assert words_of((), "one", "a") == ()
    assert words_of(((5, 0), (0, 2)), "one  two", "a bc") == ((0, 1), (1, 0))


def test_a_short_line_has_the_candidates_of_its_one_piece():
    rendered = [Rendered("eins zwei", -1.0, ((0, 5), (4, 0))), Rendered("eins", -2.0)]
    translation = joined("one two", [Piece("one two")], [rendered], 5)
    assert translation == Translation(
        (Candidate("eins zwei", -1.0, ((0, 1), (1, 0))), Candidate("eins", -2.0))
    )
    assert translation.text == "eins zwei"
    assert joined("", [Piece("")], [[Rendered("")]], 1).text == ""


def test_a_long_line_has_combinations_of_its_pieces_by_their_mean_score():
    pieces = [Piece("one.", True), Piece("two three.")]
    candidates = [
        [Rendered("eins.", -1.0, ((0, 0),)), Rendered("ein.", -4.0, ((0, 0),))],
        [Rendered("zwei drei.", -2.0, ((0, 5), (4, 0))), Rendered("zwo.", -3.0, ((0, 0),))],
    ]
    translation = joined("one.  two three.", pieces, candidates, 3)
    assert [(each.text, each.score) for each in translation.candidates] == [
        ("eins. zwei drei.", pytest.approx(-1.5)),
        ("eins. zwo.", pytest.approx(-2.0)),
        ("ein. zwei drei.", pytest.approx(-3.0)),
    ]
    assert [each.alignment for each in translation.candidates] == [
        ((0, 0), (1, 2), (2, 1)),
        ((0, 0), (1, 1)),
        ((0, 0), (1, 2), (2, 1)),
    ]


def test_a_word_that_was_cut_in_two_is_one_word():
    pieces = [Piece("abc"), Piece("def ghi")]
    candidates = [[Rendered("xy", -1.0, ((0, 0),))], [Rendered("z w", -1.0, ((0, 0), (4, 2)))]]
    translation = joined("abcdef ghi", pieces, candidates, 1)
    assert translation.text == "xyz w"
    assert translation.candidates[0].alignment == ((0, 0), (1, 1))
