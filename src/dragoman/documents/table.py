"""Tables with tabs or commas: a column is translated, and its translation is a further column."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from dragoman.corpus.text import LONGEST_LINE_BYTES
from dragoman.documents.record import Record, TranslatedText
from dragoman.errors import UserError


class _Row(NamedTuple):
    line: int
    """Number of the line that it begins with."""
    cells: list[str]
    ending: str
    """A carriage return, where lines end with one. Of a blank row, all that there is."""


def read_table(
    lines: Iterable[str], name: str, column: str, heading: str, *, with_commas: bool = False
) -> Iterator[Record]:
    """Yields a record for each row of the file with this name; blank rows stay blank.

    `column` is a number, counted from 1, of a table without headings, or one of its headings; then
    the new column gets a `heading`, too. Tables with commas have quotation marks round cells that
    need them, and line feeds inside them; in those with tabs a quotation mark is a character like
    others.
    """
    rows = _comma_rows(lines, name) if with_commas else _tab_rows(lines)
    text_of = _comma_text if with_commas else "\t".join
    position = _position(name, column)
    width, width_line = 0, 0
    for row in rows:
        if not row.cells:
            yield Record(None, partial(_fixed, text=row.ending))
            continue
        if not width:
            width, width_line = len(row.cells), row.line
            if position is None:
                position = _find(row.cells, name, row.line, column, heading)
                head = text_of([*row.cells, heading]) + row.ending
                yield Record(None, partial(_fixed, text=head))
                continue
        if len(row.cells) != width:
            raise UserError(
                f"{name}, line {row.line}: has {len(row.cells)} columns, and line {width_line} has "
                f"{width}; correct the line"
            )
        if position is None or position >= width:
            raise UserError(
                f"{name}, line {row.line}: column {column} is missing, there are {width}; "
                "correct the line or name another with --column"
            )
        write = partial(_with_column, row=row, text_of=text_of)
        yield Record(row.cells[position], write, sum(map(len, row.cells)))


def _position(name: str, column: str) -> int | None:
    """Returns the index of a column that is named by its number; None if it is a heading."""
    try:
        number = int(column)
    except ValueError:
        return None
    if number < 1:
        raise UserError(f"{name}: column {column} was requested; count from 1")
    return number - 1


def _find(cells: Sequence[str], name: str, line: int, column: str, heading: str) -> int:
    if cells.count(column) != 1:
        found = "there is no column" if column not in cells else "there are several columns"
        raise UserError(
            f"{name}, line {line}: {found} {column!r} among {', '.join(cells)[:200]}; "
            "name another with --column, or its number if the table has no headings"
        )
    if heading in cells:
        raise UserError(
            f"{name}, line {line}: there is a column {heading!r} already; "
            "name that of the translation with --output-key"
        )
    return cells.index(column)


def _tab_rows(lines: Iterable[str]) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        content, ending = _without_return(line)
        if "\t" in content or content.strip():
            yield _Row(number, content.split("\t"), ending)
        else:
            yield _Row(number, [], line)


def _comma_rows(lines: Iterable[str], name: str) -> Iterator[_Row]:
    ending = ""

    def with_line_feeds() -> Iterator[str]:
        nonlocal ending
        for line in lines:
            content, ending = _without_return(line)
            yield content + ending + "\n"

    csv.field_size_limit(LONGEST_LINE_BYTES)  # of the whole process; 131,072 characters by default
    reader = csv.reader(with_line_feeds(), strict=True)
    begin = 1
    try:
        for cells in reader:
            yield _Row(begin, cells if cells != [""] else [], ending)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{name}, line {begin}: not a row of CSV ({error}); correct the line"
        ) from None


def _without_return(line: str) -> tuple[str, str]:
    return (line[:-1], "\r") if line.endswith("\r") else (line, "")


def _comma_text(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _fixed(_: TranslatedText, text: str) -> str:
    return text


def _with_column(
    translated: TranslatedText, row: _Row, text_of: Callable[[Iterable[str]], str]
) -> str:
    return text_of([*row.cells, translated.text]) + row.ending
