"""Terms with the translations that they must have: a text file comes in, matches go out.

A line holds a source term, a tab and a target term. Empty lines, and those that begin with #, are
left out. A term matches whole words; between its words there may be any white space. One that is
written in small letters matches in any case, one with a capital matches as it is written. Of
several terms that match at one place the longest counts, and what it covers is not matched again.
"""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import UserError

# Scripts that put no space between words: CJK, Thai, Lao, Myanmar and Khmer.
_UNSPACED = (
    "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Marks that belong to the letter before them, which \\w does not know: of Latin, Hebrew and
Arabic, and all of the scripts of India."""
# In scripts without spaces each character is a word of its own.
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w{MARKS}])+|[^\w\s]")


class Term(NamedTuple):
    source: str
    target: str
    line: int
    """In the file, from 1."""


class _Wanted(NamedTuple):
    words: list[str]
    any_case: bool
    term: Term


class Glossary:
    """Terms that must be translated as they say."""

    def __init__(self, terms: Sequence[Term], origin: str = "the glossary") -> None:
        """Takes terms of which none contradicts another."""
        self.terms = tuple(terms)
        self.origin = origin
        # By the first word in small letters; longest first, and of equals what matches as written.
        self._by_first: dict[str, list[_Wanted]] = {}
        for term in self.terms:
            words, any_case = _words(term.source), term.source == term.source.lower()
            wanted = _Wanted(_folded(words) if any_case else words, any_case, term)
            self._by_first.setdefault(words[0].casefold(), []).append(wanted)
        for candidates in self._by_first.values():
            candidates.sort(key=lambda wanted: (-len(wanted.words), wanted.any_case))

    @classmethod
    def load(cls, path: Path) -> "Glossary":
        """Reads a file of terms; refuses lines that are none, and two translations of one term."""
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); check the name") from error
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            number = content[: error.start].count(b"\n") + 1
            raise UserError(f"{path}:{number}: is not UTF-8; convert the file") from error
        known: dict[str, Term] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            term = _parse(line, path, number)
            earlier = known.setdefault(term.source, term)
            if earlier.target != term.target:
                raise UserError(
                    f"{path}:{number}: {term.source!r} has another translation on line "
                    f"{earlier.line}; keep one of them"
                )
        return cls(list(known.values()), str(path))

    def terms_in(self, sentence: str) -> list[str]:
        """Returns the target terms that must appear in its translation, each once, in order."""
        return [term.target for term in self.matches(sentence)]

    def matches(self, sentence: str) -> list[Term]:
        """Returns the terms that a sentence contains, one for each target term, in order."""
        words = _words(sentence)
        folded = _folded(words)
        found: dict[str, Term] = {}
        place = 0
        while place < len(words):
            length = 1
            for wanted in self._by_first.get(folded[place], ()):
                end = place + len(wanted.words)
                if wanted.words == (folded if wanted.any_case else words)[place:end]:
                    found.setdefault(wanted.term.target, wanted.term)
                    length = len(wanted.words)
                    break
            place += length
        return list(found.values())


def is_unspaced(character: str) -> bool:
    """Returns whether words of this character's script stand side by side without spaces."""
    return _IS_UNSPACED.match(character) is not None


def _parse(line: str, path: Path, number: int) -> Term:
    parts = [" ".join(part.split()) for part in line.split("\t")]
    if len(parts) != 2 or not all(parts):
        raise UserError(
            f"{path}:{number}: {line.strip()!r:.100} is no term; write the source term, a tab and "
            "the target term"
        )
    source, target = (unicodedata.normalize("NFC", part) for part in parts)
    if not _words(source):
        raise UserError(f"{path}:{number}: {source!r:.100} holds no word; name another term")
    return Term(source, target, number)


def normal_form(text: str) -> str:
    """Returns a text as terms in small letters are compared."""
    return unicodedata.normalize("NFC", text).casefold()


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text))


def _folded(words: Sequence[str]) -> list[str]:
    return [word.casefold() for word in words]
