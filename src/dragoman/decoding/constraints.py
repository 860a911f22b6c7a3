"""Terms that a translation must contain, as patterns of pieces, and how far a hypothesis has come.

A term begins where its first piece does, and ends with a word: what follows it must not continue
the word. Hypotheses are compared by how much of all terms they have: complete ones, and the most
that they hold of another one right now.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from dragoman.decoding.glossary import Glossary, is_unspaced
from dragoman.errors import UserError
from dragoman.tokenizer import Ids, Tokenizer

WORD_START = -1
"""In a pattern: any piece that does not continue a word."""
_SPACE = "\u2581"
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")

Pattern = tuple[int, ...]
"""The pieces of a term, and often `WORD_START` behind them."""
Progress = tuple[int, ...]
"""For each pattern how many of its pieces the hypothesis ends with; all of them: it is met."""


class Terms(NamedTuple):
    """A glossary as this tokenizer writes it."""

    glossary: Glossary
    patterns: dict[str, Pattern]
    """By target term."""
    written: dict[str, str]
    """The target terms as they appear in a translation: normalized."""


def terms_of(glossary: Glossary, tokenizer: Tokenizer) -> Terms:
    """Returns the patterns of all terms; refuses one that the tokenizer cannot write."""
    patterns, written = {}, {}
    for term in glossary.terms:
        pattern = pattern_of(term.target, tokenizer)
        pieces = [piece for piece in pattern if piece != WORD_START]
        if not pieces or tokenizer.unknown in pieces:
            raise UserError(
                f"{glossary.origin}:{term.line}: the model cannot write {term.target!r}, since its "
                "tokenizer does not know all characters of it; leave the term out"
            )
        patterns[term.target] = pattern
        (written[term.target],) = tokenizer.decode([pieces])
    return Terms(glossary, patterns, written)


def pattern_of(term: str, tokenizer: Tokenizer) -> Pattern:
    """Returns the pieces of a term, among them the unknown one where the tokenizer lacks some."""
    pieces = tokenizer.encode([term])[0][:-1]
    if pieces and is_unspaced(term[0]):
        pieces = _without_space(pieces, tokenizer)
    continues = term[-1].isalnum() and not is_unspaced(term[-1])
    return (*pieces, WORD_START) if continues else tuple(pieces)


def _without_space(pieces: Ids, tokenizer: Tokenizer) -> Ids:
    """Drops the space in front where the vocabulary has the piece without it."""
    first = tokenizer.pieces[pieces[0]].removeprefix(_SPACE)
    if not first:
        return pieces[1:]
    known = _ids_of(tokenizer).get(first)
    return pieces if known is None else [known, *pieces[1:]]


@lru_cache(maxsize=4)
def _ids_of(tokenizer: Tokenizer) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(tokenizer.pieces)}


@lru_cache(maxsize=4)
def word_starts(tokenizer: Tokenizer) -> tuple[bool, ...]:
    """Returns for each piece whether a word that stands before it has ended there."""
    return tuple(map(_starts_word, tokenizer.pieces))


def _starts_word(piece: str) -> bool:
    if _BYTE.fullmatch(piece):
        return False  # perhaps a part of a letter
    first = piece[:1]
    is_letter = first.isalnum() or unicodedata.category(first or " ").startswith("M")
    return not is_letter or is_unspaced(first)


def advance(
    patterns: Sequence[Pattern],
    progress: Progress,
    history: Sequence[int],
    piece: int,
    starts: Sequence[bool],
) -> Progress:
    """Returns the progress of a hypothesis, `history` so far, after one more piece."""
    return tuple(
        matched if matched == len(pattern) else _advance(pattern, matched, history, piece, starts)
        for pattern, matched in zip(patterns, progress, strict=True)
    )


def _advance(
    pattern: Pattern, matched: int, history: Sequence[int], piece: int, starts: Sequence[bool]
) -> int:
    if _fits(pattern[matched], piece, starts):
        return matched + 1
    # A shorter beginning of the term may end here: "a a b" after "a a" and another "a".
    for shorter in range(matched, 0, -1):
        recent = [*history[len(history) - shorter + 1 :], piece]
        if len(recent) == shorter and all(
            _fits(wanted, each, starts)
            for wanted, each in zip(pattern[:shorter], recent, strict=True)
        ):
            return shorter
    return 0


def _fits(wanted: int, piece: int, starts: Sequence[bool]) -> bool:
    return starts[piece] if wanted == WORD_START else piece == wanted


def amount_met(patterns: Sequence[Pattern], progress: Progress) -> int:
    """Returns the pieces of all terms that are met, and of the one that is nearest to it.

    One more piece of that term always adds to it, so a hypothesis that is ahead can be led on, one
    piece at a time, until all terms are met.
    """
    met, begun = 0, 0
    for pattern, matched in zip(patterns, progress, strict=True):
        if matched == len(pattern):
            met += matched
        else:
            begun = max(begun, matched)
    return met + begun


def next_pieces(patterns: Sequence[Pattern], progress: Progress) -> set[int]:
    """Returns the next pieces of all terms that are not met, `WORD_START` perhaps among them."""
    return {
        pattern[matched]
        for pattern, matched in zip(patterns, progress, strict=True)
        if matched < len(pattern)
    }
