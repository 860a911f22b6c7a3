"""The phrasebook as a corpus: a function, deterministic, split by combination, and learnable."""

import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from random import Random

import pytest

from dragoman.corpus.phrasebook import MAX_PAIRS, SPLITS, Split, sentence_pairs, split_of
from dragoman.corpus.phrasebook.constructions import CONSTRUCTIONS
from dragoman.corpus.phrasebook.meaning import combination
from dragoman.errors import UserError


def words(sentence: str) -> list[str]:
    """The words of a sentence, the first without the capital it owes to its place."""
    first, *rest = sentence.rstrip(".?").replace(",", "").split()
    return [first[0].lower() + first[1:], *rest]


@pytest.fixture(scope="module")
def training_pairs() -> list[tuple[str, str]]:
    return list(sentence_pairs("train", 40_000, seed=1))


def test_every_english_sentence_has_one_german_side_whatever_the_seed() -> None:
    german_of: dict[str, str] = {}
    for seed in range(5):
        for source, target in sentence_pairs("train", 20_000, seed):
            assert german_of.setdefault(source, target) == target


def test_the_english_sentences_are_distinct(training_pairs: list[tuple[str, str]]) -> None:
    assert len({source for source, _ in training_pairs}) == 40_000


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others() -> None:
    pairs = list(sentence_pairs("train", 300, seed=3))
    assert pairs == list(sentence_pairs("train", 300, seed=3))
    assert pairs != list(sentence_pairs("train", 300, seed=4))


def test_fewer_pairs_are_a_prefix_of_more() -> None:
    assert list(sentence_pairs("test", 20, 5)) == list(islice(sentence_pairs("test", 40, 5), 20))


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_the_pairs_do_not_depend_on_the_hash_seed_of_the_process(hash_seed: str) -> None:
    program = (
        "from dragoman.corpus.phrasebook import sentence_pairs\n"
        "for split in ('train', 'test'):\n"
        "    for pair in sentence_pairs(split, 40, 2): print(ascii(pair))\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    splits: tuple[Split, ...] = ("train", "test")
    here = [ascii(pair) for split in splits for pair in sentence_pairs(split, 40, 2)]
    assert output.splitlines() == here


def test_no_sentence_is_in_two_splits_whatever_the_seeds(
    training_pairs: list[tuple[str, str]],
) -> None:
    train = {source for source, _ in training_pairs}
    validation = {source for source, _ in sentence_pairs("validation", 600, seed=2)}
    test = {source for source, _ in sentence_pairs("test", 600, seed=1)}
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_no_combination_is_in_two_splits_and_held_out_are_about_two_percent_each() -> None:
    rng = Random(8)
    split_of_combination: dict[str, str] = {}
    for _ in range(500):
        for construct in CONSTRUCTIONS:
            meaning = construct(rng)
            split = split_of(meaning)
            assert split_of_combination.setdefault(combination(meaning), split) == split
    shares = Counter(split_of_combination.values())
    for split in ("validation", "test"):
        assert 0.015 < shares[split] / len(split_of_combination) < 0.025


def test_every_word_of_the_test_split_is_seen_in_training(
    training_pairs: list[tuple[str, str]],
) -> None:
    for side in (0, 1):
        seen = {word for pair in training_pairs for word in words(pair[side])}
        # A noun at the start keeps its capital elsewhere, so both spellings count as seen.
        seen |= {word[0].lower() + word[1:] for word in seen}
        for pair in sentence_pairs("test", 600, seed=1):
            assert set(words(pair[side])) <= seen, pair


def test_nearly_every_word_a_model_meets_is_frequent(
    training_pairs: list[tuple[str, str]],
) -> None:
    for side in (0, 1):
        counts = Counter(word for pair in training_pairs for word in words(pair[side]))
        rare = sum(count for count in counts.values() if count < 10)
        assert rare / counts.total() < 0.004


def test_sentences_begin_with_a_capital_and_end_with_one_mark(
    training_pairs: list[tuple[str, str]],
) -> None:
    for pair in training_pairs:
        for sentence in pair:
            assert sentence[0].isupper()
            assert sentence[-1] in ".?"
            assert not any(mark in sentence for mark in ("  ", " ,", ",,", ",.", ",?", ".."))
        assert pair[0][-1] == pair[1][-1]


def test_pairs_come_lazily() -> None:
    assert next(sentence_pairs("train", MAX_PAIRS["train"], seed=1))


@pytest.mark.parametrize("split", SPLITS)
def test_a_count_too_large_is_refused_at_once_in_one_sentence(split: Split) -> None:
    with pytest.raises(UserError, match=r"ask for fewer\.$"):
        sentence_pairs(split, MAX_PAIRS[split] + 1, seed=1)


def test_a_negative_count_and_an_unknown_split_are_refused() -> None:
    with pytest.raises(UserError):
        sentence_pairs("train", -1, seed=1)
    with pytest.raises(UserError, match="dev"):
        sentence_pairs("dev", 1, seed=1)  # type: ignore[arg-type]


def test_no_pairs_are_asked_and_none_given() -> None:
    assert list(sentence_pairs("train", 0, seed=1)) == []
