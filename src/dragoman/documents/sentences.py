"""Sentences of a text: a line comes in, its sentences go out, together still the same line.

The boundaries are those of sentencex, which knows marks and abbreviations of many languages. Some
of them are taken back: two sentences that stay together cost a translation less than one that is
cut in two.
"""

import re
from collections.abc import Iterator

import sentencex

# fmt: off
_ORDINAL_LANGUAGES = frozenset({
    "bs", "cs", "da", "de", "dsb", "et", "eu", "fi", "fo", "hr", "hsb", "hu", "is", "lb", "lv",
    "nb", "nn", "no", "pl", "sk", "sl", "sr", "tr",
})
# fmt: on
"""Languages that write ordinal numbers with a period: "im 17. Jahrhundert"."""

WINDOW = 2000
"""Characters that sentencex gets at once, far more than a sentence has. Its time grows with the
square of the quotation marks that are not closed."""

_ORDINAL = re.compile(r"(?:^|\s|\()\d{1,2}\.$")
_INITIAL = re.compile(r"(?:^|[\s(.])[^\W\d_]\.$")
_LETTER = re.compile(r"[^\W\d_]")


def split_sentences(text: str, language: str) -> list[str]:
    """Returns the sentences of one line, each with the white space behind it.

    `language` is a code such as de, de_AT or zh-Hans. Where it is unknown, rules that most
    languages share are used.
    """
    code = language.replace("_", "-").split("-")[0].lower()
    sentences: list[list[str]] = []
    is_cut = False
    for part, ends_with_window in _segments(text, code):
        if is_cut or (sentences and _goes_on(sentences[-1][-1].rstrip(), part.lstrip(), code)):
            sentences[-1].append(part)
        else:
            sentences.append([part])
        is_cut = ends_with_window
    return ["".join(parts) for parts in sentences]


def _segments(text: str, language: str) -> Iterator[tuple[str, bool]]:
    """Yields the parts that sentencex finds in a text, and whether each ends only with a window."""
    begin = 0
    while len(text) - begin > WINDOW:
        *parts, last = sentencex.segment(language, text[begin : begin + WINDOW])
        for part in parts:
            yield part, False
        if not parts:
            parts = [last[: last.rfind(" ") + 1] or last]
            yield parts[0], True
        begin += sum(map(len, parts))  # what is cut by the window's end is read again
    for part in sentencex.segment(language, text[begin:]):
        yield part, False


def _goes_on(before: str, after: str, language: str) -> bool:
    """Returns whether there is no boundary between these parts, though sentencex has found one."""
    if not _LETTER.search(before):  # a number of a list, or "..."
        return True
    if not before.endswith("."):
        return False
    if after[:1].islower():
        return True
    if _INITIAL.search(before) and before[-2].isupper():
        return True
    return language in _ORDINAL_LANGUAGES and _ORDINAL.search(before) is not None
