"""What a translation is: candidates with scores and alignments, joined from those of its pieces.

A line that was too long is translated in pieces. Each has candidates of its own; those of the line
are the combinations with the best means of scores.
"""

import heapq
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.decoding.splitting import Piece, join

Links = tuple[tuple[int, int], ...]
"""Pairs of places in two texts: a character of the source, and one of its translation."""
_WORD = re.compile(r"\S+")


class Candidate(NamedTuple):
    text: str
    score: float
    """Log-probability over length^penalty; the mean over pieces if a long line was cut."""
    alignment: tuple[tuple[int, int], ...] = ()
    """Pairs of a source word and a target word, from 0, words split at white space, as Pharaoh
    writes them; empty unless asked for."""


class Translation(NamedTuple):
    candidates: tuple[Candidate, ...]
    """Best first, at least one; no text comes twice."""

    @property
    def text(self) -> str:
        return self.candidates[0].text


class Rendered(NamedTuple):
    """One candidate of a piece of a line."""

    text: str
    score: float = 0.0
    links: Links = ()


def distinct(rendered: Sequence[Rendered], count: int) -> list[Rendered]:
    """Returns the first `count` with different texts: one text can have several segmentations."""
    by_text: dict[str, Rendered] = {}
    for each in rendered:
        by_text.setdefault(each.text, each)
    return list(by_text.values())[:count]


def joined(
    line: str, pieces: Sequence[Piece], candidates: Sequence[Sequence[Rendered]], count: int
) -> Translation:
    """Returns the translation of a line, whose pieces have these candidates, best first."""
    if len(pieces) == 1:
        found = (
            Candidate(each.text, each.score, words_of(each.links, line, each.text))
            for each in candidates[0]
        )
        return Translation(tuple(found))
    best: dict[str, Candidate] = {}
    for choice in k_best([[each.score for each in of_piece] for of_piece in candidates], count):
        chosen = [of_piece[n] for of_piece, n in zip(candidates, choice, strict=True)]
        text = join(pieces, [each.text for each in chosen])
        score = sum(each.score for each in chosen) / max(1, len(chosen))
        alignment = words_of(_shifted(line, pieces, text, chosen), line, text)
        best.setdefault(text, Candidate(text, score, alignment))
    return Translation(tuple(best.values()))


def k_best(scores: Sequence[Sequence[float]], count: int) -> list[tuple[int, ...]]:
    """Returns the choices of one of each list with the largest sums, best first.

    Each list comes best first.
    """
    chains: list[tuple[float, _Chain | None]] = [(0.0, None)]
    for of_one in scores:
        # What is not among the first in both cannot be among the first of their sums.
        grown = [
            (total + score, _Chain(place, chain))
            for rank, (total, chain) in enumerate(chains, 1)
            for place, score in enumerate(of_one[: count // rank])
        ]
        chains = heapq.nlargest(count, grown, key=lambda each: each[0])
    return [_choices(chain) for _, chain in chains]


class _Chain(NamedTuple):
    """Choices so far, the last one first: sharing them keeps a line of many pieces cheap."""

    place: int
    before: "_Chain | None"


def _choices(chain: _Chain | None) -> tuple[int, ...]:
    places = []
    while chain is not None:
        places.append(chain.place)
        chain = chain.before
    return tuple(reversed(places))


def words_of(links: Links, source: str, target: str) -> tuple[tuple[int, int], ...]:
    """Returns pairs of words for pairs of characters, each once, in order."""
    if not links:
        return ()
    starts = [[match.start() for match in _WORD.finditer(text)] for text in (source, target)]
    pairs = {
        (bisect_right(starts[0], of_source) - 1, bisect_right(starts[1], of_target) - 1)
        for of_source, of_target in links
    }
    return tuple(sorted(pairs))


def _shifted(line: str, pieces: Sequence[Piece], text: str, chosen: Sequence[Rendered]) -> Links:
    """Returns the links of all pieces as places in the whole line and its translation."""
    links: list[tuple[int, int]] = []
    source = target = 0
    for piece, rendered in zip(pieces, chosen, strict=True):
        # Only white space stands between two pieces, and between their translations.
        source = line.index(piece.text, source)
        target = text.index(rendered.text, target)
        links += [(source + begin, target + end) for begin, end in rendered.links]
        source, target = source + len(piece.text), target + len(rendered.text)
    return tuple(links)
