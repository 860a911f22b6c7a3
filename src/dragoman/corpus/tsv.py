"""Pairs from tables, one row per line, columns separated by tabs: a file comes in, pairs go out."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from dragoman.corpus.pair import Pair
from dragoman.corpus.text import read_raw_lines
from dragoman.errors import UserError


def read_tsv(path: Path, source_column: int, target_column: int) -> Iterator[Pair]:
    """Yields two columns of every row, counted from 1. A quotation mark is a character like others:
    tabs and line feeds cannot occur in a text, so nothing needs quoting.
    """
    return tsv_pairs(read_raw_lines(path), path, source_column, target_column)


def tsv_pairs(
    lines: Iterable[str], path: Path, source_column: int, target_column: int, first_line: int = 1
) -> Iterator[Pair]:
    """Yields the pairs of some rows of a file, whose first one has this number there."""
    if min(source_column, target_column) < 1:
        raise UserError(
            f"{path}: columns {source_column} and {target_column} were requested; count from 1"
        )
    needed = max(source_column, target_column)
    for number, line in enumerate(lines, start=first_line):
        columns = line.split("\t", needed)
        if len(columns) < needed:
            remedy = (
                "separate columns by tabs, which commas do not, or correct the line"
                if len(columns) == 1 and "," in line
                else "correct the line or name other columns"
            )
            raise UserError(
                f"{path}, line {number}: column {needed} is missing, there are {len(columns)}; "
                f"{remedy}"
            )
        yield Pair(columns[source_column - 1].strip(), columns[target_column - 1].strip())
