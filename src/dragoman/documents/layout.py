"""The layout of a text: sentences come out of it, and their translations take their places.

Indentation, bullets, blank lines, the white space between sentences and at the ends of lines, and
everything without a letter or digit stay as they are.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from dragoman.decoding.splitting import ends_unspaced
from dragoman.documents.sentences import split_sentences
from dragoman.documents.wrapping import MARGIN, Paragraph, unwrapped

# ruff: noqa: RUF001 - dashes that look alike are different bullets

Lines = Literal["split", "whole", "wrapped"]
"""What a line of a text is: some sentences, exactly one, or a part of a paragraph."""

_BULLET = re.compile(
    r"(?:(?:[-*+•‣◦▪·–—]|#{1,6}|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s+)*",
)
_WORD = re.compile(r"\w")


class Slots(NamedTuple):
    """One line or paragraph, with places for the translations of its sentences."""

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]
    """What is before the first sentence, between sentences, and behind the last."""
    width: int = 0
    """Characters of a line if the paragraph has to be wrapped again, else 0."""
    margin: str = ""
    """What each further line of a wrapped paragraph begins with."""


class Layout(NamedTuple):
    """A text, in lines or paragraphs; one sentence of it after the other."""

    slots: tuple[Slots, ...]

    @property
    def sentences(self) -> list[str]:
        return [sentence for slots in self.slots for sentence in slots.sentences]


def take_apart(text: str, language: str, lines: Lines) -> Layout:
    """Returns the sentences of a text, without white space around them, and where they stood."""
    if lines == "wrapped":
        return Layout(tuple(_wrapped(paragraph, language) for paragraph in unwrapped(text)))
    return Layout(tuple(_slots(line, language, lines) for line in text.split("\n")))


def put_together(layout: Layout, translations: Sequence[str]) -> str:
    """Returns the text with a translation in place of each sentence."""
    if len(translations) != len(layout.sentences):
        raise ValueError(f"{len(translations)} translations of {len(layout.sentences)} sentences")
    remaining = iter(translations)
    return "\n".join(_filled(slots, remaining) for slots in layout.slots)


def _slots(line: str, language: str, lines: Lines) -> Slots:
    sentences: list[str] = []
    gaps = [""]
    if lines == "whole":
        parts = [line]
    else:
        gaps[0] = _margin(line)
        parts = split_sentences(line[len(gaps[0]) :], language)
    for part in parts:
        sentence = part.strip()
        if not sentence or (lines != "whole" and not _WORD.search(sentence)):
            gaps[-1] += part
            continue
        begin = part.index(sentence)
        gaps[-1] += part[:begin]
        sentences.append(sentence)
        gaps.append(part[begin + len(sentence) :])
    return Slots(tuple(sentences), tuple(gaps))


def _margin(line: str) -> str:
    """Returns what a line begins with before its first word: indentation, quotation, bullets."""
    margin = MARGIN.match(line)
    end = margin.end() if margin else 0
    bullet = _BULLET.match(line, end)
    return line[: bullet.end() if bullet else end]


def _wrapped(paragraph: Paragraph, language: str) -> Slots:
    slots = _slots(paragraph.text, language, "wrapped")
    return slots._replace(width=paragraph.width, margin=paragraph.margin)


def _filled(slots: Slots, translations: Iterator[str]) -> str:
    text = []
    last = len(slots.sentences) - 1
    for number, (sentence, gap) in enumerate(zip(slots.sentences, slots.gaps[1:], strict=True)):
        translation = _on_one_line(next(translations))
        text += [translation, gap if number == last else _gap(sentence, translation, gap)]
    filled = "".join(text)
    if not slots.width or not slots.sentences:
        return slots.gaps[0] + filled
    lines = textwrap.wrap(
        filled,
        slots.width,
        initial_indent=slots.gaps[0],
        subsequent_indent=slots.margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if slots.gaps[-1].endswith("\r"):
        return "\r\n".join(lines) + "\r"
    return "\n".join(lines)


def _gap(sentence: str, translation: str, gap: str) -> str:
    """Returns what stands between a translation and the next.

    Languages without spaces get none between sentences, and those that are translated from one of
    them get one.
    """
    if not translation:
        return gap.strip()
    if not gap and ends_unspaced(sentence) and not ends_unspaced(translation):
        return " "
    if gap.isspace() and not ends_unspaced(sentence) and ends_unspaced(translation):
        return ""
    return gap


def _on_one_line(translation: str) -> str:
    """Returns a translation that cannot change the number of lines or columns."""
    for character in "\n\r\t":
        translation = translation.replace(character, " ")
    return translation
