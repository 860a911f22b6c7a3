"""Characters that the tokenizer does not know: where a text has them, and their way into its
translation, which every run of them reaches, once and unchanged. A word with a letter that is not
known, such as a name, is copied whole.

A run at the begin or the end of a text, such as an emoji, is set aside and put back at the same
end. One amid the text is seen by the model as an unknown piece. Where the model writes an unknown
piece, the run that it attends to most is copied; a run that the model has left out is put behind
the word that attends to it most.
"""

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.decoding.glossary import MARKS, is_unspaced
from dragoman.tokenizer import Span

_WORD = re.compile(rf"(?:[^\W_]|[{MARKS}])+")
Attention = npt.NDArray[np.float32]


class Run(NamedTuple):
    """Adjacent characters that one unknown piece stands for."""

    begin: int
    end: int
    piece: int
    """Its place among the pieces of the text."""


class Aside(NamedTuple):
    """A text without the runs at its ends: what stands before and behind, and the rest."""

    before: str
    rest: str
    after: str


def unknown_runs(text: str, spans: Sequence[Span], unknown: int) -> list[Run]:
    """Returns the runs of unknown characters in a text, in order."""
    runs = []
    for number, span in enumerate(spans):
        # A character of several pieces may be unknown in a part of it, and is copied whole.
        begin, end = span.begin, max(span.end, span.begin + 1)
        if span.piece == unknown and text[begin:end].strip():
            lead = len(text[begin:end]) - len(text[begin:end].lstrip())
            runs.append(Run(begin + lead, begin + len(text[begin:end].rstrip()), number))
    return runs


def torn_words(text: str, runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Returns begin and end of words that hold letters of runs, and others beside them.

    In scripts without spaces each character stands for itself.
    """
    unknown_letters = {
        place
        for run in runs
        for place in range(run.begin, run.end)
        if text[place].isalpha() and not is_unspaced(text[place])
    }
    if not unknown_letters:
        return []
    spans = (match.span() for match in _WORD.finditer(text))
    return [
        (begin, end) for begin, end in spans if not unknown_letters.isdisjoint(range(begin, end))
    ]


def spans_of_whole_words(
    text: str,
    words: Sequence[tuple[int, int]],
    runs: Sequence[Run],
    spans_of: Callable[[str], list[Span]],
) -> list[Span]:
    """Returns the spans of a text in which its first unknown run stands for each of these words."""
    shortened, origins, place = "", list[int](), 0
    for begin, end in words:
        run = next(run for run in runs if begin < run.end)
        # All of it: a letter may be unknown only together with the mark behind it.
        unknown = text[max(begin, run.begin) : min(end, run.end)]
        shortened += text[place:begin] + unknown
        origins += [*range(place, begin), *[begin] * len(unknown)]
        place = end
    shortened += text[place:]
    origins += [*range(place, len(text) + 1)]
    return [Span(piece, origins[begin], origins[end]) for piece, begin, end in spans_of(shortened)]


def set_aside(text: str, runs: Sequence[Run], keep_begin: bool = False) -> Aside:
    """Cuts off the runs at both ends, with the white space beside them, or only at the end."""
    begin, end = 0, len(text)
    for run in runs:
        if keep_begin or text[begin : run.begin].strip():
            break
        begin = run.end
    for run in reversed(runs):
        if run.begin < begin or text[run.end : end].strip():
            break
        end = run.begin
    if not text[begin:end].strip():
        return Aside("", "", text)
    rest = text[begin:end]
    begin += len(rest) - len(rest.lstrip())
    end -= len(rest) - len(rest.rstrip())
    return Aside(text[:begin], text[begin:end], text[end:])


def copies(
    unknown_places: Sequence[int], runs: Sequence[Run], attention: Attention | None
) -> dict[int, Run]:
    """Returns which run each unknown piece of a hypothesis is a copy of.

    The strongest attention decides first, and no run is copied twice. Unknown pieces that no run
    is left for are missing.
    """
    if attention is None:
        return dict(zip(unknown_places, runs, strict=False))
    pairs = [(place, run) for place in unknown_places for run in runs]
    # Of equals the first ones.
    pairs.sort(key=lambda pair: -attention[pair[0], pair[1].piece])
    copied: dict[int, Run] = {}
    for place, run in pairs:
        if place not in copied and run not in copied.values():
            copied[place] = run
    return copied


def insertions(
    lost: Sequence[Run],
    surfaces: Sequence[str],
    first: int,
    attention: Attention | None,
    inside_terms: AbstractSet[int] = frozenset(),
) -> dict[int, list[Run]]:
    """Returns the runs to insert in front of pieces of a hypothesis; behind the last: its length.

    They come behind the word that attends to them most, not before the piece `first`, and not in
    front of pieces `inside_terms`, which would tear a term apart.
    """
    inserted: dict[int, list[Run]] = {}
    for run in lost:
        place = len(surfaces)
        if attention is not None and first < len(surfaces):
            most = first + int(attention[first:, run.piece].argmax())
            ends = (
                n
                for n in range(most + 1, len(surfaces))
                if surfaces[n][:1].isspace() and n not in inside_terms
            )
            place = next(ends, len(surfaces))
        inserted.setdefault(place, []).append(run)
    return inserted
