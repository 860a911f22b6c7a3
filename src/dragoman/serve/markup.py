"""HTML as text with places for translations: a page comes in, its layouts and markup go out.

Tags, comments and attributes stay as they are. Text of scripts and styles, of code, and of elements
with translate="no" stays untranslated. What is translated is escaped: no translation can become
markup.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from html.parser import HTMLParser
from itertools import islice

from dragoman.documents.layout import Layout, put_together

Part = str | Layout
"""Markup, or a text between two tags."""

_UNTRANSLATED = frozenset({"script", "style", "code", "pre", "kbd", "samp", "var", "textarea"})
_RAW = frozenset({"script", "style"})
"""Elements whose text is no HTML: nothing in it is escaped."""
# fmt: off
_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
})
# fmt: on
"""Elements without content, and so without an end tag."""


def take_apart_html(text: str, take_apart: Callable[[str], Layout]) -> list[Part]:
    """Returns markup and texts in order; a text is what stands between two tags."""
    reader = _Reader(take_apart)
    reader.feed(text)
    reader.close()
    return reader.parts


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


class _Reader(HTMLParser):
    def __init__(self, take_apart: Callable[[str], Layout]) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[Part] = []
        self._take_apart = take_apart
        self._closed: list[str] = []
        """Elements around this place in which nothing is translated, the outermost first."""
        self._element = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")
        self._element = tag
        if tag in _VOID:
            return
        # Elements of the same name inside are counted: their end is not this one's.
        is_closed = tag in _UNTRANSLATED or ("translate", "no") in attributes
        if is_closed or tag in self._closed:
            self._closed.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        self._element = ""
        if tag in self._closed:
            while self._closed.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._element in _RAW:
            self.parts.append(data)
        elif self._closed:
            self.parts.append(escape(data, quote=False))
        else:
            self.parts.append(self._take_apart(data))

    def handle_comment(self, data: str) -> None:
        self.parts.append(f"<!--{data}-->")

    def handle_decl(self, declaration: str) -> None:
        self.parts.append(f"<!{declaration}>")

    def unknown_decl(self, data: str) -> None:
        self.parts.append(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self.parts.append(f"<?{data}>")
