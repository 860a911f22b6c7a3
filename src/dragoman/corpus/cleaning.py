"""Selects pairs that are worth learning from: raw pairs come in, clean and dropped ones go out.

Every check looks at one pair alone, so that a corpus can be cleaned in slices, in any order and on
any machine. What needs the whole corpus, duplicates and leaks, is decided later from the keys that
each clean pair gets here.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.config import CleaningSettings
from dragoman.corpus.pair import Pair
from dragoman.errors import UserError
from dragoman.installation import install_command

EXAMPLES_KEPT = 20
EXAMPLE_CHARACTERS = 2000

# Tabs and the like inside a line are white space; the rest of the control characters, and the
# replacement character, are signs of a broken file.
_BROKEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd]")
# The same, and white space other than a space or the line feed between lines.
_IRREGULAR = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufffd]"
)
_BLOCK = 64

Languages = tuple[str, str]

# Letters that the writing of a language is made of; languages that are not listed are not checked.
_SCRIPTS = {
    "Latin": "A-Za-zªºÀ-ÖØ-öø-ɏ\u1e00-\u1eff",
    "Cyrillic": "Ѐ-ԯ",
    "Greek": "Ͱ-Ͽἀ-῿",
    "Arabic": "؀-ۿݐ-ݿ",
    "Hebrew": "֐-׿",
    "Devanagari": "ऀ-ॿ",
    "Han": "一-鿿㐀-䶿",
    "Japanese": "぀-ヿ一-鿿㐀-䶿",
    "Hangul": "가-힯ᄀ-ᇿ",
    "Thai": "฀-๿",
}
_LANGUAGES = {
    "Latin": "af az bs ca cs cy da de en eo es et eu fi fo fr ga gl hr hu id is it lb lt lv ms mt "
    "nb nl nn no oc pl pt ro sk sl so sq sv sw tl tr vi",
    "Cyrillic": "be bg kk ky mk mn ru uk",
    "Greek": "el",
    "Arabic": "ar fa ps ur",
    "Hebrew": "he yi",
    "Devanagari": "hi mr ne",
    "Han": "zh",
    "Japanese": "ja",
    "Hangul": "ko",
    "Thai": "th",
}
_SCRIPT_OF = {
    language: script for script, codes in _LANGUAGES.items() for language in codes.split()
}


@dataclass
class Cleaned:
    """The pairs that are kept, a key for each, and the others by reason."""

    pairs: list[Pair] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Pair]] = field(default_factory=dict)

    def drop(self, reason: str, pair: Pair) -> None:
        self.dropped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES_KEPT:
            shown.append(Pair(*(side[:EXAMPLE_CHARACTERS] for side in pair)))


def clean(pairs: Sequence[Pair], settings: CleaningSettings, languages: Languages) -> Cleaned:
    """Normalizes each pair, and drops it for the first reason that applies."""
    cleaned = Cleaned()
    check = _checks(settings, languages)
    for begin in range(0, len(pairs), _BLOCK):
        block = pairs[begin : begin + _BLOCK]
        # Most text is plain. Checking a whole block costs a tenth of checking each line.
        is_plain = all(_is_plain(side, settings) for side in zip(*block, strict=True))
        for raw in block:
            pair = raw if is_plain else normalized(raw, settings)
            if reason := check(pair, is_plain):
                cleaned.drop(reason, raw)
            else:
                cleaned.pairs.append(pair)
    return cleaned


def normalized(pair: Pair, settings: CleaningSettings) -> Pair:
    """Returns the pair in one Unicode form, with single spaces."""
    source, target = pair
    if settings.unicode_form != "none":
        source = unicodedata.normalize(settings.unicode_form, source)
        target = unicodedata.normalize(settings.unicode_form, target)
    return Pair(" ".join(source.split()), " ".join(target.split()))


def _is_plain(lines: Sequence[str], settings: CleaningSettings) -> bool:
    """Returns whether no line has anything to normalize, or a control character."""
    text = "\n".join(["", *lines, ""])
    if "  " in text or "\n " in text or " \n" in text or _IRREGULAR.search(text):
        return False
    form = settings.unicode_form
    return form == "none" or text.isascii() or unicodedata.is_normalized(form, text)


def keys(pairs: Sequence[Pair], settings: CleaningSettings) -> npt.NDArray[np.uint64]:
    """Returns 64 bits for each pair, equal for pairs that count as duplicates.

    A collision of two others is to be expected only from some four billion pairs on.
    """
    sides: Iterable[Sequence[str]] = zip(*pairs, strict=True)
    if settings.duplicates == "near":
        sides = [_essences(side) for side in sides]
    blake2b = hashlib.blake2b
    digests = [
        blake2b(f"{source}\t{target}".encode(), digest_size=8).digest()
        for source, target in zip(*sides, strict=True)
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8")


class _LettersAlone(dict[int, str | None]):
    """A translation table that is filled as characters occur."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = kept = character if character.isalpha() else None
        return kept


_LETTERS_ALONE = _LettersAlone()


def _essences(lines: Sequence[str]) -> list[str]:
    """Returns each line without case, punctuation, digits and spaces.

    Text without any letter, such as a date, stays as it is: otherwise all dates would be equal.
    """
    return [line.casefold().translate(_LETTERS_ALONE) or line for line in lines]


def _checks(settings: CleaningSettings, languages: Languages) -> Callable[[Pair, bool], str | None]:
    source_script, target_script = map(_script_of, languages)
    identify = _identifier(languages) if settings.languages else None

    def reason_to_drop(pair: Pair, is_plain: bool) -> str | None:
        source, target = pair
        if not source or not target:
            if source or target:
                return "target empty" if source else "source empty"
            return "both sides empty"
        shorter, longer = len(source), len(target)
        if shorter > longer:
            shorter, longer = longer, shorter
        if longer > settings.max_characters:
            return "longer than cleaning.max_characters"
        # Among a few characters any ratio is normal: "OK" is "In Ordnung".
        if longer > 20 and longer > settings.max_ratio * shorter:
            return "sides of very different length"
        if not is_plain and (_BROKEN.search(source) or _BROKEN.search(target)):
            return "control characters"
        if settings.drop_copies and source == target and any(map(str.isalpha, source)):
            return "copy of the source"
        if settings.scripts and (
            _is_foreign(source, source_script) or _is_foreign(target, target_script)
        ):
            return "wrong script"
        if identify and (reason := identify(pair)):
            return reason
        return None

    return reason_to_drop


class _Script(NamedTuple):
    has_ascii: bool
    foreign: re.Pattern[str]
    """Pattern that finds a letter of another script."""


def _script_of(language: str) -> _Script | None:
    """Returns the script of a language; None if it is not known here."""
    name = _SCRIPT_OF.get(re.split("[-_]", language.lower())[0])
    if name is None:
        return None
    return _Script(name == "Latin", re.compile(rf"[^\W\d_{_SCRIPTS[name]}]"))


def _is_foreign(text: str, script: _Script | None) -> bool:
    """Returns whether more than half of the letters are of another script."""
    if script is None or (script.has_ascii and text.isascii()):
        return False
    found = script.foreign.findall(text)
    return bool(found) and 2 * len(found) > sum(map(str.isalpha, text))


def share_in_script(text: str, language: str) -> float | None:
    """Returns the share of letters that are of a language's script; None: script unknown here."""
    letters = sum(map(str.isalpha, text))
    script = _script_of(language)
    if script is None or not letters:
        return None
    return 1 - len(script.foreign.findall(text)) / letters


def _identifier(languages: Languages) -> Callable[[Pair], str | None]:
    """Returns a check with Compact Language Detector 2, whose models come with its package."""
    try:
        import pycld2  # noqa: PLC0415
    except ImportError:
        raise UserError(
            "cleaning.languages needs a language identifier; set it to false, or install one: "
            f"{install_command('language')}"
        ) from None

    def is_other(text: str, language: str) -> bool:
        try:
            is_reliable, _, found = pycld2.detect(text, isPlainText=True, bestEffort=False)
        except pycld2.error:  # text that it cannot parse
            return False
        return is_reliable and found[0][1] not in (language, "un")

    def identify(pair: Pair) -> str | None:
        for side, text, language in zip(("source", "target"), pair, languages, strict=True):
            if is_other(text, language):
                return f"{side} in another language"
        return None

    return identify
