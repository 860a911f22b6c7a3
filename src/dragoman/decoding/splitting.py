"""Lines that are too long for a model: a text comes in, pieces go out; their translations are
joined to one line again.

A line is cut at every sentence end. A sentence that is still too long is cut as late as it may be,
after a comma or the like, else at a space, else anywhere. White space where a cut is made is left
out; everything else of the text is in one of the pieces, in order. Time grows with the length.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

Measure = Callable[[Sequence[str]], Sequence[int]]
"""Returns the number of subword pieces of each text."""


class Piece(NamedTuple):
    text: str
    has_space_after: bool = False
    """Whether there was white space between this piece and the next."""


class _End(IntEnum):
    """What an atom ends with, the best place for a cut first."""

    SENTENCE = 0
    CLAUSE = 1
    SPACE = 2
    ANYWHERE = 3


class _Atom(NamedTuple):
    """A span of text inside which no cut is made."""

    begin: int
    end: int
    size: int
    """Number of subword pieces."""
    ends_at: _End


# ruff: noqa: RUF001 - marks that look alike are those of different scripts
# Chinese and Japanese have no spaces, but marks of their own.
_WIDE_MARKS = "。！？，、；：…"
_CLOSING = "\"')\\]”’»«」』）"
_SENTENCE_END = re.compile(rf"(?:[.!?…][{_CLOSING}]*|[。！？][。！？…{_CLOSING}]*)$")
_CLAUSE_END = re.compile(rf"(?:[,;:–—][{_CLOSING}]*|[)\]]|[，、；：][{_CLOSING}]*)$")
# "Dr.", "J." and "z.", and in German "3.", mostly stand inside a sentence.
_ABBREVIATION = re.compile(r"(?:^|\W)(?:[^\W\d_]|[^\W\d_a-z]\w{1,2}|\d+)\.$")
_UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]$")


def split(text: str, longest: int, measure: Measure) -> list[Piece]:
    """Returns pieces of at most `longest` tokens, if sizes of parts add up and no single character
    has more.
    """
    atoms = list(_atoms(text, longest, measure))
    pieces = []
    begin = 0
    while begin < len(atoms):
        end = _cut(atoms, begin, longest)
        last = atoms[end - 1]
        has_space_after = text[last.end : last.end + 1].isspace()
        pieces.append(Piece(text[atoms[begin].begin : last.end], has_space_after))
        begin = end
    return pieces


def join(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """Joins the translations of all pieces of a line into one line.

    Languages without spaces get none between sentences, and those that are translated from one of
    them get one.
    """
    joined: list[str] = []
    for piece, translation in zip(pieces, translations, strict=True):
        if not translation:
            continue
        joined.append(translation)
        wants_space = piece.has_space_after or ends_unspaced(piece.text)
        joined.append(" " if wants_space and not ends_unspaced(translation) else "")
    return "".join(joined[:-1])


def ends_unspaced(text: str) -> bool:
    """Returns whether a text ends in a script that has no spaces between words or sentences."""
    return _UNSPACED.search(text) is not None


def _cut(atoms: Sequence[_Atom], begin: int, longest: int) -> int:
    """Returns the end of the piece that begins with this atom."""
    size = 0
    clause_end = space_end = None
    for number in range(begin, len(atoms)):
        atom = atoms[number]
        size += atom.size
        if size > longest and number > begin:
            return clause_end or space_end or number
        if atom.ends_at == _End.SENTENCE:
            return number + 1
        if atom.ends_at == _End.CLAUSE and 2 * size > longest:  # no shreds such as "Yes,"
            clause_end = number + 1
        elif atom.ends_at <= _End.SPACE:
            space_end = number + 1
    return len(atoms)


def _atoms(text: str, longest: int, measure: Measure) -> Iterator[_Atom]:
    """Yields words, cut after `longest` characters: an encoder may need time that grows with the
    square of a word's length.
    """
    word = re.compile(
        rf"[^\s{_WIDE_MARKS}]{{1,{longest}}}(?:[{_WIDE_MARKS}][{_WIDE_MARKS}{_CLOSING}]{{0,8}})?"
        rf"|[{_WIDE_MARKS}]{{1,{longest}}}"
    )
    spans = [match.span() for match in word.finditer(text)]
    for begin, end, size in _measured(text, spans, longest, measure):
        yield _Atom(begin, end, size, _end_of(text, begin, end))


def _measured(
    text: str, spans: Sequence[tuple[int, int]], longest: int, measure: Measure
) -> Iterator[tuple[int, int, int]]:
    """Returns spans with their sizes, halved where one alone is too large."""
    sizes = measure([text[begin:end] for begin, end in spans])
    for (begin, end), size in zip(spans, sizes, strict=True):
        if size > longest and end - begin > 1:
            middle = (begin + end) // 2
            yield from _measured(text, [(begin, middle), (middle, end)], longest, measure)
        else:
            yield begin, end, size


def _end_of(text: str, begin: int, end: int) -> _End:
    # Three characters: two spaces often stand between sentences.
    word, following = text[begin:end], text[end : end + 3]
    has_space = following[:1].isspace()
    is_wide = ends_unspaced(word)
    if has_space or is_wide:
        if _SENTENCE_END.search(word) and not (
            following.lstrip()[:1].islower() or _ABBREVIATION.search(word)
        ):
            return _End.SENTENCE
        if _CLAUSE_END.search(word):
            return _End.CLAUSE
    return _End.SPACE if has_space else _End.ANYWHERE
