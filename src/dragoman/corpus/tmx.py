"""Pairs from translation memories, TMX 1.1 to 1.4b: a file comes in, pairs go out.

Expat is driven directly, without a tree: memory does not grow with the file, and a document type
that declares entities can be refused before one is expanded.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from dragoman.corpus.pair import Pair
from dragoman.corpus.text import BLOCK_BYTES, ByteReader, one_line, open_binary
from dragoman.errors import UserError

LONGEST_UNIT_BYTES = 10_000_000

# These hold code of the original document, or (sub) a separate text inside such code: a footnote,
# a title. The remaining inline element, hi, marks words of the sentence itself.
_CODES = {"bpt", "ept", "ph", "it", "ut", "sub"}


def read_tmx(path: Path, source_language: str, target_language: str) -> Iterator[Pair]:
    """Yields a pair for each translation unit that has both languages; skips other units.

    A language code matches its regions too (en: en-US), but not the other way round. Where a unit
    has several texts in a language, the first counts.
    """
    with open_binary(path) as file:
        yield from _Memory(path, source_language, target_language).read(file)


class _Memory:
    """The parser between two events: which unit, which language, which text it is in."""

    def __init__(self, path: Path, source_language: str, target_language: str) -> None:
        self._path = path
        self._languages = (source_language, target_language)
        self._is_tmx = False
        self._units_read = 0
        self._pairs: list[Pair] = []
        self._texts: dict[str, str] = {}
        self._language: str | None = None
        self._segment: list[str] | None = None
        self._codes_open = 0

        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse_declaration
        self._parser.SkippedEntityHandler = self._refuse_entity

    def read(self, file: ByteReader) -> Iterator[Pair]:
        unit_bytes = 0
        while block := file.read1(BLOCK_BYTES):
            units_before = self._units_read
            yield from self._feed(block)
            unit_bytes = unit_bytes + len(block) if self._units_read == units_before else 0
            if unit_bytes > LONGEST_UNIT_BYTES:
                raise self._error(
                    f"{LONGEST_UNIT_BYTES / 1e6:g} MB without the end of a translation unit; "
                    "check that this is a translation memory"
                )
        yield from self._feed(b"", is_last=True)

    def _feed(self, block: bytes, is_last: bool = False) -> list[Pair]:
        self._pairs = []
        try:
            self._parser.Parse(block, is_last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise self._error(f"not well formed ({reason}); correct it or get it again") from error
        except (LookupError, ValueError) as error:
            raise self._error(f"{error}; convert the file to UTF-8") from error
        return self._pairs

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._is_tmx:
            if tag != "tmx":
                raise self._error(f"begins with <{tag}>, not with <tmx>; name a TMX file")
            self._is_tmx = True
        elif self._segment is not None:
            if self._codes_open or tag in _CODES:
                self._codes_open += 1
        elif tag == "tu":
            self._texts = {}
        elif tag == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang", "")  # lang: before 1.4
            self._language = next((it for it in self._languages if _is_in(code, it)), None)
        elif tag == "seg":
            self._segment = []

    def _end(self, tag: str) -> None:
        if self._codes_open:
            self._codes_open -= 1
        elif tag == "seg" and self._segment is not None:
            if self._language is not None:
                self._texts.setdefault(self._language, one_line("".join(self._segment)))
            self._segment = None
        elif tag == "tu":
            self._units_read += 1
            source, target = map(self._texts.get, self._languages)
            if source is not None and target is not None:
                self._pairs.append(Pair(source, target))

    def _characters(self, text: str) -> None:
        if self._segment is not None and not self._codes_open:
            self._segment.append(text)

    def _refuse_declaration(self, name: str, *_: object) -> None:
        # A few declarations that contain each other grow to gigabytes, or read other files.
        raise self._error(f"declares the entity {name}, which no TMX file needs; remove it")

    def _refuse_entity(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self._error(f"&{name}; is not declared; write the character itself")

    def _error(self, problem: str) -> UserError:
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        return UserError(
            f"{self._path}, line {line}, column {column}, "
            f"after {self._units_read} whole translation units: {problem}"
        )


def _is_in(code: str, language: str) -> bool:
    code, language = (text.lower().replace("_", "-") for text in (code, language))
    return code == language or code.startswith(language + "-")
