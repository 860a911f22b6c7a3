"""The form of a document: its lines and what was asked for come in, records go out."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import NamedTuple

from dragoman.corpus.text import COMPRESSIONS
from dragoman.documents.json_lines import DETAILS_KEY, read_json_lines
from dragoman.documents.layout import Lines
from dragoman.documents.record import Record
from dragoman.documents.table import read_table
from dragoman.documents.text_lines import read_detailed_lines, read_text_lines
from dragoman.errors import UserError

_NEEDED = {".tsv": "--column", ".csv": "--column", ".jsonl": "--key"}
"""What has to be named in files with these endings."""


class Form(NamedTuple):
    """What a document looks like, and what is written for it."""

    lines: Lines = "split"
    column: str = ""
    """Number or heading of the column to translate, if the document is a table."""
    key: str = ""
    """Key of the text to translate, if the document consists of JSON lines."""
    output_key: str = ""
    """Key or heading of the translation; by default "translation" and the target language."""
    detailed: bool = False
    """Whether candidates and scores are written."""
    as_json: bool = False
    aligned: bool = False
    """Whether alignments are written."""


def kind_of(name: str) -> str:
    """Returns the ending of a file's name, without that of a compression: .csv for a.csv.gz."""
    path = PurePath(name)
    return (path.with_suffix("") if path.suffix in COMPRESSIONS else path).suffix.lower()


def check_form(form: Form, name: str) -> None:
    """Refuses what makes no sense together, for a document with this name."""
    if form.column and form.key:
        raise UserError("--column and --key were both given; a document is a table or JSON Lines")
    if form.column and form.detailed:
        raise UserError(
            "a cell of a table holds one translation; leave --n-best, --scores, --alignment and "
            "--json out, or translate JSON Lines with --key"
        )
    if form.output_key and not (form.column or form.key):
        raise UserError("--output-key is for documents with --column or --key; leave it out")
    if form.key and form.detailed and form.output_key.split(".")[0] == DETAILS_KEY:
        raise UserError(
            f"--output-key {form.output_key}: candidates are written under {DETAILS_KEY}; "
            "name another key"
        )
    needed = _NEEDED.get(kind_of(name))
    if needed and not (form.column or form.key):
        raise UserError(f"{name}: name what to translate with {needed}")


def read_records(
    lines: Iterable[str], name: str, form: Form, target_language: str
) -> Iterator[Record]:
    """Yields the records of the document with this name, which may be a file's."""
    if form.key:
        return read_json_lines(
            lines,
            name,
            form.key,
            form.output_key or "translation",
            detailed=form.detailed,
            aligned=form.aligned,
        )
    if form.column:
        heading = form.output_key or target_language or "translation"
        with_commas = kind_of(name) == ".csv"
        return read_table(lines, name, form.column, heading, with_commas=with_commas)
    is_wrapped = form.lines == "wrapped"
    if form.detailed:
        return read_detailed_lines(
            lines, wrapped=is_wrapped, as_json=form.as_json, aligned=form.aligned
        )
    return read_text_lines(lines, wrapped=is_wrapped)
