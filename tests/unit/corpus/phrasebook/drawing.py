"""What a construction draws, with the same seed each time."""

from collections.abc import Callable
from random import Random

from dragoman.corpus.phrasebook import english, german
from dragoman.corpus.phrasebook.meaning import Meaning


def drawn(construct: Callable[[Random], Meaning], count: int = 200) -> list[Meaning]:
    rng = Random(7)
    return [construct(rng) for _ in range(count)]


def said(construct: Callable[[Random], Meaning], count: int = 200) -> list[tuple[str, str]]:
    """The same draws as (English, German)."""
    return [(english.sentence(m), german.sentence(m)) for m in drawn(construct, count)]
