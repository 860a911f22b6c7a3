"""Reads lines that differ in nothing but their numbers, all at once.

The steps of a run are such lines, and so are its readings. One of them is the pattern: the numbers
behind its colons, and the texts before, between and behind them. In all other lines each number
begins behind the same colon and ends where the next text must begin. So colons are all that is
searched for. That the texts are those of the pattern is one comparison, and the numbers are one
conversion, both by Arrow, which works on the lines where they lie.

Readers of any JSON take twice as long and more: docs/telemetry.md compares them.
"""

import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dragoman.telemetry.read.tables import Array

MOST_BYTES = 1 << 30
"""Of a text: places in it are numbers of 32 bits, so that half as much memory is moved."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|:(\s*)(-?\d[\d.eE+-]*|NaN|-?Infinity)|:')
_MAY_BEGIN_A_NUMBER = np.isin(np.arange(256), list(b"-0123456789NI"))


@dataclass(frozen=True)
class Lines:
    """A text of whole lines, and where all of them and their colons are."""

    text: bytes
    begins: Array
    ends: Array
    """Behind the line feed."""
    marks: Array
    """Colons and line feeds."""
    first_mark: Array
    """Of each line, among all marks."""
    colons: Array
    """How many each line has."""

    @classmethod
    def of(cls, text: bytes) -> "Lines":
        if not text.endswith(b"\n"):
            text += b"\n"
        characters = np.frombuffer(text, np.uint8)
        marks = np.flatnonzero((characters == ord(":")) | (characters == ord("\n")))
        last_mark = np.flatnonzero(characters[marks] == ord("\n"))
        first_mark = np.append(0, last_mark[:-1] + 1)
        ends = marks[last_mark] + 1
        begins = np.append(0, ends[:-1])
        return cls(text, begins, ends, marks, first_mark, colons=last_mark - first_mark)

    def __getitem__(self, line: int) -> bytes:
        return self.text[self.begins[line] : self.ends[line] - 1]


class NumberIndex(int):
    """Which number of a line it is, among those behind colons: 0 is the first."""


class Pattern(NamedTuple):
    content: dict[str, Any]
    """The parsed line, with a NumberIndex in the place of each number."""
    texts: list[bytes]
    """Before the first number, between two, and behind the last."""
    colons: int
    colon_before: Array
    """Which of the line's colons stands before each number."""
    behind_colon: Array
    """How far behind it the number begins: older runs have a space."""


def pattern_of(line: bytes) -> Pattern | None:
    """Returns None for a line that is torn or has no numbers."""
    texts: list[bytes] = []
    colon_before: list[int] = []
    behind_colon: list[int] = []
    colons = end = 0
    for token in _TOKEN.finditer(line):
        if token[2]:
            texts.append(line[end : token.start(2)])
            colon_before.append(colons)
            behind_colon.append(token.start(2) - token.start())
            end = token.end()
        colons += token[0].count(b":")
    texts.append(line[end:] + b"\n")
    numbered = [b"%s%d" % (before, place) for place, before in enumerate(texts[:-1])]
    try:
        content = json.loads(b"".join([*numbered, texts[-1]]), parse_int=NumberIndex)
    except (ValueError, RecursionError):
        return None
    if not numbered or not isinstance(content, dict):
        return None
    return Pattern(content, texts, colons, np.array(colon_before), np.array(behind_colon))


class Alike(NamedTuple):
    lines: Array
    """The numbers of the lines in their text."""
    numbers: list[Array]
    """For each number of the pattern, that of every line."""


def read_alike(pattern: Pattern, integers: Set[int], lines: Lines, among: Array) -> Alike | None:
    """Returns those of the lines `among` that are like the pattern; `integers` says which of its
    numbers must be integers. None: in the place of a number is what only looks like one."""
    if len(lines.text) > MOST_BYTES:
        return None
    found = among[lines.colons[among] == pattern.colons]
    cuts = _cuts(pattern, lines, found)
    found, cuts = _where(_are_in_order(cuts), found, cuts)
    found, cuts = _where(_have_texts(pattern.texts, lines.text, cuts), found, cuts)
    numbers = _numbers(lines.text, cuts, integers)
    if numbers is None:
        found, cuts = _where(_have_numbers(lines.text, cuts), found, cuts)
        numbers = _numbers(lines.text, cuts, integers)
    return Alike(found, numbers) if numbers and len(found) else None


def _where(mask: Array, found: Array, cuts: Array) -> tuple[Array, Array]:
    return (found, cuts) if mask.all() else (found[mask], cuts[mask])


def _cuts(pattern: Pattern, lines: Lines, found: Array) -> Array:
    """Returns a row for each line: where it begins, where each of its numbers begins and ends if it
    is like the pattern, and where it ends."""
    cuts = np.empty((len(found), 2 * len(pattern.texts)), dtype=np.int32)
    cuts[:, 0] = lines.begins[found]
    colons = lines.marks[lines.first_mark[found][:, None] + pattern.colon_before]
    cuts[:, 1:-1:2] = colons + pattern.behind_colon
    cuts[:, -1] = lines.ends[found]
    cuts[:, 2::2] = cuts[:, 3::2] - [len(text) for text in pattern.texts[1:]]
    return cuts


def _are_in_order(cuts: Array) -> Array:
    """Returns a mask of the lines, as those below. Arrow must not be given cuts that go back."""
    return _all_of_each(cuts[:, 1:-1:2] < cuts[:, 2:-1:2])


def _have_texts(texts: Sequence[bytes], text: bytes, cuts: Array) -> Array:
    """Returns which lines have the texts before, between and behind their numbers."""
    import pyarrow.compute as pc  # noqa: PLC0415

    lengths = np.zeros(cuts.shape[1], dtype=np.int32)
    lengths[::2] = [len(own) for own in texts]
    in_line = lengths.cumsum(dtype=np.int32) - lengths
    begins = np.arange(len(cuts), dtype=np.int32) * lengths.sum(dtype=np.int32)
    expected = _pieces(b"".join(texts) * len(cuts), begins[:, None] + in_line)
    is_same = pc.equal(_pieces(text, cuts), expected).buffers()[1]
    bits = np.unpackbits(np.frombuffer(is_same, np.uint8), count=cuts.size, bitorder="little")
    return _all_of_each(bits.reshape(cuts.shape)[:, ::2])


def _have_numbers(text: bytes, cuts: Array) -> Array:
    """Returns which lines have numbers where they must be, rather than null or a word."""
    first = np.frombuffer(text, np.uint8)[cuts[:, 1:-1:2]]
    return _all_of_each(_MAY_BEGIN_A_NUMBER[first])


def _all_of_each(masks: Array) -> Array:
    holds: Array = np.logical_and.reduce(masks, axis=1)
    return holds


def _numbers(text: bytes, cuts: Array, integers: Set[int]) -> list[Array] | None:
    """Returns a column for each number; None where there is something else."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        numbers = _converted("float64", text, cuts[:, 1:-1])
        for place in integers:
            own = cuts[:, 1 + 2 * place : 3 + 2 * place]
            [numbers[place]] = _converted("int64", text, own)
    except pa.ArrowInvalid:
        return None
    return numbers


def _converted(type_name: str, text: bytes, cuts: Array) -> list[Array]:
    """Returns a column for each two cuts, between which is a number."""
    import pyarrow as pa  # noqa: PLC0415

    # What lies between two numbers is null to Arrow, which does not look at it then.
    every_second = pa.py_buffer(b"\x55" * (cuts.size // 8 + 1))
    values = _pieces(text, cuts, every_second).cast(type_name).buffers()[1]
    table = np.frombuffer(values, type_name, cuts.size).reshape(cuts.shape)
    return [column.copy() for column in table.T[::2]]


def _pieces(text: bytes, cuts: Array, valid: Any = None) -> Any:
    """Returns what lies between each cut and the next, as an Arrow array that points into the
    text."""
    import pyarrow as pa  # noqa: PLC0415 - takes a fifth of a second

    offsets = np.append(cuts, cuts[-1:, -1:])
    return pa.Array.from_buffers(
        pa.utf8(), cuts.size, [valid, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
