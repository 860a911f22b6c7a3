"""The training corpus as slices of a fixed size, with the same numbers on every machine."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from dragoman.config import DataSettings
from dragoman.corpus.cleaning import Languages
from dragoman.corpus.pair import Pair
from dragoman.corpus.sources import languages_of, read_source

PAIRS_PER_SLICE = 100_000
CHARACTERS_PER_SLICE = 200_000_000
"""Bounds the memory that a slice of very long lines takes; sentences never come near it."""


class Share(NamedTuple):
    """Slice n belongs to the share whose number is n modulo the count of shares."""

    number: int
    shares: int

    def has(self, slice_number: int) -> bool:
        return slice_number % self.shares == self.number


class Slice(NamedTuple):
    number: int
    source_number: int
    """Which of the recipe's training sources it belongs to; a slice belongs to one."""
    languages: Languages
    pairs: list[Pair]


def slices(
    data: DataSettings, is_wanted: Callable[[int], bool], pairs_per_slice: int = PAIRS_PER_SLICE
) -> Iterator[Slice]:
    """Yields the wanted slices in order. All are counted, so that numbers never change."""
    number = 0
    for source_number, source in enumerate(data.train):
        pairs = read_source(source, data, "train")
        while content := _take(pairs, pairs_per_slice):
            if is_wanted(number):
                yield Slice(number, source_number, languages_of(source, data), content)
            number += 1


def _take(pairs: Iterator[Pair], most: int) -> list[Pair]:
    taken: list[Pair] = []
    characters = 0
    for pair in pairs:
        taken.append(pair)
        characters += len(pair.source) + len(pair.target)
        if len(taken) == most or characters > CHARACTERS_PER_SLICE:
            break
    return taken


def count_slices(data: DataSettings, pairs_per_slice: int = PAIRS_PER_SLICE) -> int:
    count = 0

    def none(number: int) -> bool:
        nonlocal count
        count = number + 1
        return False

    for _ in slices(data, none, pairs_per_slice):
        pass
    return count
