import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.decoding.splitting import Piece, ends_unspaced, join, split


def characters(texts):
    return [len(text) for text in texts]


def words(texts):
    return [1 for _ in texts]


def texts_of(pieces):
    return [piece.text for piece in pieces]


def test_sentences_are_pieces():
    text = 'One is here. "Two is there!"  Three? Four'
    assert texts_of(split(text, 20, characters)) == [
        "One is here.",
        '"Two is there!"',
        "Three?",
        "Four",
    ]


def test_an_abbreviation_or_a_number_does_not_end_a_sentence():
    text = "Am 3. Mai kam Dr. J. Smith aus Bonn z. B. mit dem Zug."
    assert texts_of(split(text, 100, characters)) == [text]


def test_a_sentence_that_is_too_long_is_cut_after_a_comma_rather_than_at_a_space():
    text = "one two three four, five six seven; eight nine ten"
    assert texts_of(split(text, 6, words)) == [
        "one two three four,",
        "five six seven; eight nine ten",
    ]
    assert texts_of(split("yes, a b c d e", 4, words)) == ["yes, a b c", "d e"]


def test_a_word_that_is_too_long_is_cut_anywhere():
    pieces = split("ab abcdefghij k", 4, characters)
    assert texts_of(pieces) == ["ab", "abcd", "efgh", "ij k"]
    assert [piece.has_space_after for piece in pieces] == [True, False, False, False]


def test_chinese_is_cut_at_its_own_marks():
    pieces = split("他来了。我们去吃饭，然后回家！好吗", 6, characters)
    assert texts_of(pieces) == ["他来了。", "我们去吃饭，", "然后回家！", "好吗"]


def test_a_character_that_counts_more_than_others_makes_the_pieces_shorter():
    pieces = split("x" * 16, 8, lambda texts: [4 * len(text) for text in texts])
    assert texts_of(pieces) == ["xx"] * 8


def test_translations_are_joined_with_a_space_where_the_language_has_one():
    spaced = [Piece("One.", True), Piece("Two.")]
    unspaced = [Piece("一。"), Piece("二。")]
    assert join(spaced, ["Eins.", "Zwei."]) == "Eins. Zwei."
    assert join(spaced, ["一。", "二。"]) == "一。二。"
    assert join(unspaced, ["One.", "Two."]) == "One. Two."
    assert join([Piece("ab"), Piece("cd", True), Piece("e")], ["AB", "", "E"]) == "ABE"
    assert join([], []) == join([Piece("")], [""]) == ""


def test_chinese_and_japanese_end_unspaced():
    assert [ends_unspaced(text) for text in ("好", "好。", "はい", "Yes.", "好 a", "")] == [
        *(True, True, True, False, False, False)
    ]


@settings(derandomize=True, database=None, deadline=None)
@given(
    st.text(
        st.sampled_from("aÄ z9 .,;!?\u3000。，」)\"'\t\u2028_-漢") | st.characters(), max_size=300
    ),
    st.integers(1, 20),
)
def test_pieces_are_the_text_but_for_white_space_and_none_is_too_long(text, longest):
    def without_spaces(texts):
        return [len(re.sub(r"\s", "", text)) for text in texts]

    pieces = split(text, longest, without_spaces)
    assert all(piece.text == piece.text.strip() != "" for piece in pieces)
    assert max(without_spaces(texts_of(pieces)), default=0) <= longest
    marked = "".join(piece.text + (" " if piece.has_space_after else "") for piece in pieces)
    assert re.sub(r"\s+", " ", marked).strip() == re.sub(r"\s+", " ", text).strip()


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "ab " * 100_000, "a." * 500_000, "。" * 1_000_000]
)
def test_a_megabyte_is_measured_about_once(text):
    measured = 0

    def counted(texts):
        nonlocal measured
        measured += sum(map(len, texts))
        return [max(1, len(text) // 4) for text in texts]

    pieces = split(text, 200, counted)
    assert sum(len(piece.text) for piece in pieces) >= len(text.replace(" ", ""))
    assert measured <= len(text)
