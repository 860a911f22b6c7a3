"""Wrapped text, as in mails and README files: its lines come in, whole paragraphs go out.

A paragraph ends at a blank line, before a bullet, at a line of dashes or the like, where the
quotation gets deeper or ends, and behind a line that is much shorter than the others, as headings
and addresses are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MARGIN = re.compile(r"[^\S\n]*(?:>[^\S\n]?)*[^\S\n]*")
"""Indentation, and the marks in front of quoted lines of a mail."""

# Dashes are none here: they often begin a line in the middle of a sentence.
_BULLET = re.compile(r"(?:[-*+•‣◦▪]|#{1,6}|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s")
_WORD = re.compile(r"\w")
_SHORT = 0.5
"""Length of a line that ends a paragraph, as a part of the longest line around it."""


class Paragraph(NamedTuple):
    text: str
    """On one line, with its indentation and bullet, and with the white space at its end."""
    width: int = 0
    """Characters of its longest line; 0 if it was on one line."""
    margin: str = ""
    """What its further lines begin with."""


def blocks(lines: Iterable[str], most_characters: int) -> Iterator[str]:
    """Yields blank lines, and lines that stand together as one text, in order.

    A text of more than `most_characters` is cut, so that it fits into memory.
    """
    block: list[str] = []
    characters = 0
    for line in lines:
        if block and (not line.strip() or characters > most_characters):
            yield "\n".join(block)
            block, characters = [], 0
        if line.strip():
            block.append(line)
            characters += len(line)
        else:
            yield line
    if block:
        yield "\n".join(block)


def unwrapped(text: str) -> list[Paragraph]:
    """Returns the paragraphs of a text; each blank line is one of its own."""
    paragraphs = []
    for block in blocks(text.split("\n"), len(text)):
        lines = block.split("\n")
        longest = max(len(line.rstrip()) for line in lines)
        begin = 0
        for end in range(1, len(lines) + 1):
            if end == len(lines) or _begins(lines[end], lines[end - 1], longest):
                paragraphs.append(_joined(lines[begin:end]))
                begin = end
    return paragraphs


def _begins(line: str, before: str, longest: int) -> bool:
    """Returns whether a paragraph begins with this line, and not with the one before."""
    margin, margin_before = _margin(line), _margin(before)
    return (
        _BULLET.match(line, len(margin)) is not None
        or margin.count(">") != margin_before.count(">")
        or not (_WORD.search(line) and _WORD.search(before))
        or len(before.rstrip()) < _SHORT * longest
    )


def _joined(lines: Sequence[str]) -> Paragraph:
    if len(lines) == 1:
        return Paragraph(lines[0])
    inner = [line.rstrip() for line in lines[:-1]]
    further = [line[len(_margin(line)) :] for line in [*inner[1:], lines[-1]]]
    return Paragraph(
        " ".join([inner[0], *further]),
        width=max(len(line.rstrip()) for line in lines),
        margin=_margin(lines[1]),
    )


def _margin(line: str) -> str:
    margin = MARGIN.match(line)
    return margin[0] if margin else ""
