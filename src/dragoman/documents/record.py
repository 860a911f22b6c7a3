"""What readers of documents yield and writers get: a text with its place, and its translation."""

from collections.abc import Callable, Sequence
from math import nan
from typing import NamedTuple, Protocol


class Candidate(Protocol):
    """A translation of one sentence, as `decoding.translation.Candidate`."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float:
        """Log-probability, divided by a power of the length."""

    @property
    def alignment(self) -> Sequence[tuple[int, int]]:
        """Pairs of a source and a target word, counted from 0."""


class BestText(NamedTuple):
    """A candidate of which nothing but the text was asked for."""

    text: str
    score: float = nan
    alignment: tuple[tuple[int, int], ...] = ()


class TranslatedSentence(NamedTuple):
    source: str
    candidates: Sequence[Candidate]
    """At least one, the best first."""


class TranslatedText(NamedTuple):
    text: str
    """The best candidates of all sentences, in the layout of the source."""
    sentences: tuple[TranslatedSentence, ...]


class Record(NamedTuple):
    """A line of text, a row of a table or an object."""

    text: str | None
    """What to translate; may have several lines. None for the head of a table and blank rows."""
    write: Callable[[TranslatedText], str]
    """Returns what to write for it, without a line feed at the end."""
    kept_characters: int = 0
    """Of the row or object, which is kept until it is written."""
