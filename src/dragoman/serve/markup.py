"""HTML as text with places for translations: a page comes in, its layouts and markup go out.

Tags, comments and attributes stay as they are. Text of scripts and styles, of code, and of elements
with translate="no" stays untranslated. What is translated is escaped: no translation can become
markup.

The pattern is our own since Python's html.parser takes a time that grows with the square of a page
whose tags do not end, and raises errors at some declarations. Whatever
does not end here is matched to the end of the page, so that nothing is read twice.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape, unescape
from itertools import islice

from dragoman.documents.layout import Layout, put_together

Part = str | Layout
"""Markup, or a text between two tags."""

_MARKUP = re.compile(
    r"""
      <!--(?: -?> | .*?(?: --!?> | \Z ))                        # a comment
    | <(?P<slash>/?)(?P<name>[a-z][^\s/>]*+)
      (?P<attributes>(?: [^=>]++ | =\s*+(?: "[^"]*+" | '[^']*+' | (?!["']) ) )*+)>
    | <[!?/][^>]*+>                                             # a declaration
    | (?P<unfinished><[a-z!?/].*)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([^\s=/]++)\s*+(?:=\s*+("[^"]*+"|'[^']*+'|\S*+))?""")

_RAW = ("script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp")
"""Elements in which nothing is markup but their own end."""
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_UNTRANSLATED = frozenset({*_RAW, "code", "pre", "kbd", "samp", "var"} - {"title"})
# fmt: off
_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
})
# fmt: on
"""Elements without content, and so without an end tag."""


def take_apart_html(page: str, take_apart: Callable[[str], Layout]) -> list[Part]:
    """Returns markup and texts in order; a text is what stands between two tags."""
    parts: list[Part] = []
    # Elements around this place in which nothing is translated, the outermost first.
    closed: list[str] = []

    def add_text(text: str) -> None:
        if text:
            parts.append(text if closed else take_apart(unescape(text)))

    place = 0
    while place < len(page):
        found = _MARKUP.search(page, place)
        if found is None or found["unfinished"]:
            add_text(page[place:])
            break
        add_text(page[place : found.start()])
        parts.append(found[0])
        place = found.end()
        name = (found["name"] or "").lower()
        if found["slash"]:
            if name in closed:
                while closed.pop() != name:
                    pass
        elif name and name not in _VOID and not found["attributes"].endswith("/"):
            # Elements of the same name inside are counted: their end is not this one's.
            if name in _UNTRANSLATED or name in closed or _is_left_alone(found["attributes"]):
                closed.append(name)
            if name in _RAW:
                end = _RAW_END[name].search(page, place)
                text = page[place : end.start() if end else len(page)]
                add_text(text)
                place += len(text)
    return parts


def put_together_html(parts: Sequence[Part], translations: Iterator[str]) -> str:
    """Returns the page with a translation in place of each sentence."""
    return "".join(
        part
        if isinstance(part, str)
        else escape(
            put_together(part, list(islice(translations, len(part.sentences)))), quote=False
        )
        for part in parts
    )


def _is_left_alone(attributes: str) -> bool:
    """Returns whether the attributes of an element say that it is not to be translated."""
    return any(
        found[1].lower() == "translate" and (found[2] or "").strip("\"'").lower() == "no"
        for found in _ATTRIBUTE.finditer(attributes)
    )
