"""Lines of plain text: each is a record, or in wrapped text each block of lines."""

from collections.abc import Iterable, Iterator
from functools import partial

from dragoman.documents.candidates import candidate_rows, json_line, sentence_objects
from dragoman.documents.record import Record, TranslatedText
from dragoman.documents.wrapping import blocks

MOST_BLOCK_CHARACTERS = 1_000_000
"""Of lines that stand together in wrapped text; more are cut, to fit into memory."""


def read_text_lines(lines: Iterable[str], wrapped: bool = False) -> Iterator[Record]:
    """Yields records that are written as plain text: the translation alone."""
    for text in blocks(lines, MOST_BLOCK_CHARACTERS) if wrapped else lines:
        yield Record(text, _plain)


def read_detailed_lines(
    lines: Iterable[str], *, wrapped: bool = False, as_json: bool, aligned: bool
) -> Iterator[Record]:
    """Yields records that are written with candidates and scores, and the number of their line."""
    write = _json if as_json else candidate_rows
    number = 1
    for text in blocks(lines, MOST_BLOCK_CHARACTERS) if wrapped else lines:
        yield Record(text, partial(write, number=number, aligned=aligned))
        number += 1 + (text.count("\n") if wrapped else 0)


def _plain(translated: TranslatedText) -> str:
    return translated.text


def _json(translated: TranslatedText, number: int, aligned: bool) -> str:
    return json_line(
        {
            "line": number,
            "translation": translated.text,
            "sentences": sentence_objects(translated, aligned),
        }
    )
