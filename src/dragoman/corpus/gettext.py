"""Pairs from the message catalogs of programs: .po or .mo files come in, pairs go out.

The source language is the one that messages are written in, English by custom.
"""

import codecs
import re
import struct
from collections.abc import Iterable, Iterator
from gettext import c2py
from pathlib import Path
from typing import NamedTuple

from dragoman.corpus.pair import Pair
from dragoman.corpus.text import one_line, open_binary
from dragoman.errors import UserError

LARGEST_CATALOG_BYTES = 100_000_000

MOST_SHARED = 20
"""How many times the size of a compiled catalog its messages may add up to."""

LONGEST_LABEL = 1000
"""Most characters of a menu entry; the patterns below would take long on longer text."""

# Codecs of Python that no catalog is written in: some take hours, some make what is no text.
_NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}

_LITTLE_ENDIAN, _BIG_ENDIAN = b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"


class Message(NamedTuple):
    singular: str
    """What the program asks for; empty in the header of a catalog."""
    plural: str | None
    forms: tuple[str, ...]
    """Translations, one for each plural form of the target language."""
    is_fuzzy: bool = False
    """A guessed translation that nobody has reviewed."""


def find_catalogs(folder: Path, language: str) -> list[Path]:
    """Returns the catalogs of a language below a folder, sorted.

    Installed ones (de/LC_MESSAGES/name.mo) and those of source trees (de.po, de/name.po). Beside
    its .po, a .mo holds the same once more and is left out.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; check its name")
    wanted = _plain_code(language)
    catalogs = {
        path
        for suffix in ("po", "mo")
        for path in folder.rglob(f"*.{suffix}")
        if wanted in map(_plain_code, _places_of_language(path)) and path.is_file()
    }
    return sorted(
        path for path in catalogs if path.suffix == ".po" or path.with_suffix(".po") not in catalogs
    )


def _places_of_language(path: Path) -> tuple[str, ...]:
    parent = path.parent
    return path.stem, parent.parent.name if parent.name == "LC_MESSAGES" else parent.name


def _plain_code(language: str) -> str:
    return language.lower().replace("-", "_")


def read_catalog(path: Path) -> Iterator[Pair]:
    """Yields the pairs of a catalog as sentences, without fuzzy, obsolete and untranslated ones."""
    content = bytearray()  # whole, as programs load it: catalogs are small
    with open_binary(path) as file:
        while block := file.read1(1 << 20):
            content += block
            if len(content) > LARGEST_CATALOG_BYTES:
                raise UserError(
                    f"{path}: holds more than {LARGEST_CATALOG_BYTES / 1e6:g} MB, which no message "
                    "catalog does; remove it from the folder"
                )
    is_compiled = content[:4] in (_LITTLE_ENDIAN, _BIG_ENDIAN)
    messages = _read_mo(bytes(content), path) if is_compiled else _read_po(bytes(content), path)
    yield from _pairs(messages)


def _pairs(messages: Iterable[Message]) -> Iterator[Pair]:
    form_of_one, form_of_many = 0, -1
    for message in messages:
        if not message.singular:
            form_of_one, form_of_many = _plural_forms(message.forms[0])
            continue
        if message.is_fuzzy:
            continue
        pairs = [_sentences(message.singular, _form(message, form_of_one))]
        if message.plural is not None:
            pairs.append(_sentences(message.plural, _form(message, form_of_many)))
        yield from (pair for pair in dict.fromkeys(pairs) if pair.source and pair.target)


def _form(message: Message, number: int) -> str:
    return message.forms[number] if 0 <= number < len(message.forms) else message.forms[-1]


def _plural_forms(header: str) -> tuple[int, int]:
    """Returns the plural forms of a translation for one thing and for many things.

    Mostly the first and the last, but Arabic has none before one, and Slovenian catalogs begin with
    many. Five stands for many: languages that set small numbers apart seldom count it among them.
    """
    rule = re.search(r"(?<!n)plural\s*=\s*([^;\n]+)", header)
    try:
        form_of = c2py(rule[1]) if rule else None
        return (form_of(1), form_of(5)) if form_of else (0, -1)
    except (ValueError, ZeroDivisionError):
        return 0, -1


def _charset(header: str) -> str:
    match = re.search(r"charset\s*=\s*([\w.:+-]+)", header)
    # CHARSET is what a template has until a translator fills it in.
    return match[1] if match and match[1] != "CHARSET" else "utf-8"


def _decode(content: bytes, charset: str) -> str:
    if codecs.lookup(charset).name in _NO_CHARSETS:
        raise LookupError(f"{charset} is no charset")
    return content.decode(charset)


# .po: text


_FIELD = re.compile(
    r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?)\s*)?"((?:[^"\\\0]|\\[^\0])*)"'
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_ESCAPED = dict(zip('abfnrtv"\\', '\a\b\f\n\r\t\v"\\', strict=True))


def _read_po(content: bytes, path: Path) -> Iterator[Message]:
    # The header, the first message, declares the encoding of the file, itself included.
    header = b"".join(re.split(rb"^msgid\b", content, maxsplit=2, flags=re.MULTILINE)[:2])
    charset = _charset(header.decode("latin-1"))
    try:
        text = _decode(content, charset)
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {number}: not {charset} ({error.reason}), as its header declares; "
            "correct the charset in the header"
        ) from error
    except LookupError:
        raise UserError(
            f"{path}: the charset {charset} of the header is unknown; correct it"
        ) from None
    return _parse_po(text, path)


def _parse_po(text: str, path: Path) -> Iterator[Message]:
    fields: dict[str, list[str]] = {}
    keyword, number = "", 0
    is_fuzzy = False
    for number, line in enumerate(map(str.strip, text.removeprefix("\ufeff").split("\n")), start=1):
        if not line:
            continue
        match = _FIELD.fullmatch(line)
        if not match and not line.startswith("#"):
            raise UserError(f"{path}, line {number}: not a line of a catalog; correct it")
        begins_entry = not match or match[1] in ("msgctxt", "msgid")
        if begins_entry and any(name.startswith("msgstr") for name in fields):
            yield _message(fields, is_fuzzy, path, number - 1)
            fields, keyword, is_fuzzy = {}, "", False
        if match:
            keyword = match[1] or keyword
            if not keyword or (match[1] and keyword in fields):
                raise UserError(f"{path}, line {number}: out of place here; correct the message")
            fields.setdefault(keyword, []).append(_unescape(match[2], path, number))
        elif line.startswith("#,"):
            is_fuzzy = is_fuzzy or "fuzzy" in re.split(r"[,\s]+", line)
        elif line.startswith("#~"):  # obsolete: a comment to us, and flags before it are its own
            is_fuzzy = False
    if fields:
        yield _message(fields, is_fuzzy, path, number)


def _message(lines: dict[str, list[str]], is_fuzzy: bool, path: Path, number: int) -> Message:
    fields = {name: "".join(parts) for name, parts in lines.items()}
    forms = tuple(fields[name] for name in sorted(fields) if name.startswith("msgstr"))
    if "msgid" not in fields or not forms:
        raise UserError(
            f"{path}, line {number}: a message ends here without msgid or msgstr; "
            "correct it or get the file again"
        )
    return Message(fields["msgid"], fields.get("msgid_plural"), forms, is_fuzzy)


def _unescape(text: str, path: Path, number: int) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code in _ESCAPED:
            return _ESCAPED[code]
        value = int(code[1:], 16) if code[0] == "x" else int(code, 8)
        if not 0 < value < 128:
            raise ValueError  # a byte of some encoding
        return chr(value)

    try:
        return _ESCAPE.sub(character, text) if "\\" in text else text
    except ValueError:
        raise UserError(
            f"{path}, line {number}: unknown escape sequence; write the character itself"
        ) from None


# .mo: compiled


def _read_mo(content: bytes, path: Path) -> Iterator[Message]:
    """Reads the format of https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html.

    Python's own reader gives up the plurals of the source language.
    """
    byte_order = "<" if content.startswith(_LITTLE_ENDIAN) else ">"
    charset = "utf-8"
    read = 0
    try:
        count, ids_at, translations_at = struct.unpack_from(f"{byte_order}3I", content, 8)
        for number in range(count):
            singular, *plurals = _entry(content, byte_order, ids_at + number * 8)
            forms = _entry(content, byte_order, translations_at + number * 8)
            read += sum(map(len, (singular, *plurals, *forms)))
            if read > MOST_SHARED * len(content):
                raise UserError(
                    f"{path}: its messages add up to more than {MOST_SHARED} times its size, as "
                    "overlapping ones do; get it again"
                )
            if not singular:
                charset = _charset(forms[0].decode("latin-1"))
            yield Message(
                _decode(singular.rpartition(b"\4")[2], charset),  # a context stands before it
                _decode(plurals[0], charset) if plurals else None,
                tuple(_decode(form, charset) for form in forms),
            )
    except (struct.error, ValueError, LookupError) as error:
        raise UserError(f"{path}: not a complete catalog ({error}); get it again") from error


def _entry(content: bytes, byte_order: str, position: int) -> list[bytes]:
    length, offset = struct.unpack_from(f"{byte_order}2I", content, position)
    if offset + length > len(content):
        raise ValueError("a message extends beyond its end")
    return content[offset : offset + length].split(b"\0")


# From messages to sentences


def _key_pattern(marker: str) -> re.Pattern[str]:
    """The key of a menu entry: a letter marked in a word, or one in parentheses of its own where
    the writing has no such letter. Words that look like code have none.
    """
    code = r"\s%{}()<>/=;$@\[\]\\"
    return re.compile(
        rf"\s*[(\uff08]{marker}\w[)\uff09]"
        rf"|(?<!\S)(?P<before>[^\d_{code}]*){marker}(?P<after>\w[^{code}]*)(?!\S)"
    )


_KEY_PATTERNS = {marker: _key_pattern(marker) for marker in "_&"}


def _sentences(source: str, target: str) -> Pair:
    for marker in _KEY_PATTERNS:
        source, target = (
            _without_key(source, target, marker),
            _without_key(target, source, marker),
        )
    return Pair(one_line(source), one_line(target))


def _without_key(text: str, translation: str, marker: str) -> str:
    key = _find_key(text, marker)
    if not key:
        return text
    if key["before"] is None:
        return text[: key.start()] + text[key.end() :]
    if key["before"] and not _is_label(text, key, translation, marker):
        return text
    return text.replace(marker, "")


def _find_key(text: str, marker: str) -> re.Match[str] | None:
    if len(text) > LONGEST_LABEL or text.count(marker) != 1:
        return None
    return _KEY_PATTERNS[marker].search(text)


def _is_label(text: str, key: re.Match[str], translation: str, marker: str) -> bool:
    """Returns whether a mark inside a word is a key (E_xit), not part of a name (file_name, R&D).

    Labels begin with a capital letter and have a key on both sides. Names stay the same on both.
    """
    name = re.search(rf"[a-zA-Z\d]*{marker}[a-zA-Z\d]*", text)
    return (
        not text.lstrip()[:1].islower()
        and not key["after"][0].isupper()
        and _find_key(translation, marker) is not None
        and name is not None
        and name[0] not in translation
    )
