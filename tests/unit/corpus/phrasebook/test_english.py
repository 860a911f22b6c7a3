import re

import pytest
from unit.corpus.phrasebook.written_by_hand import GOLDEN

from dragoman.corpus.phrasebook import english, sentence_pairs
from dragoman.corpus.phrasebook.meaning import Meaning


@pytest.mark.parametrize(("meaning", "source"), [row[:2] for row in GOLDEN])
def test_a_meaning_is_said_as_a_native_speaker_would(meaning: Meaning, source: str) -> None:
    assert english.sentence(meaning) == source


def test_english_inflects_with_its_spelling_rules() -> None:
    assert [english.third_person(base) for base in ("go", "watch", "carry", "play", "have")] == [
        "goes",
        "watches",
        "carries",
        "plays",
        "has",
    ]
    assert [english.progressive(base) for base in ("sit", "bake", "see", "wait", "open")] == [
        "sitting",
        "baking",
        "seeing",
        "waiting",
        "opening",
    ]
    assert [english.indefinite_article(word) for word in ("apple", "cup", "old hat")] == [
        "an",
        "a",
        "an",
    ]


def test_an_stands_before_vowels_only() -> None:
    for source, _ in sentence_pairs("train", 12_000, seed=12):
        assert not re.search(r"\b[Aa] [aeio]", source), source
        assert not re.search(r"\b[Aa]n [^aeiou]", source), source
