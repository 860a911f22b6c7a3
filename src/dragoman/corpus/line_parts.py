"""Where to cut files of lines: plain files come in, ranges of bytes with equal lines go out.

Counting line feeds takes a fraction of the time of reading text. So a corpus is counted once, and
whoever reads a part of it later begins at the part's first byte.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.corpus.sources import unequal_sides
from dragoman.corpus.text import decode_lines, regular_file_status
from dragoman.errors import UserError

BLOCK_BYTES = 1 << 20


class LinePart(NamedTuple):
    """The same lines of each file."""

    first_line: int
    """Its number in the files, counted from 1."""
    lines: int
    ranges: list[tuple[int, int]]
    """Begin and end in bytes, for each file."""

    @property
    def bytes(self) -> int:
        return sum(end - begin for begin, end in self.ranges)


def line_parts(
    files: Sequence[Path],
    lines_after: Callable[[int], int],
    most_bytes: int,
    lines_that_fit: Callable[[Sequence[int], int], int],
    advance: Callable[[int], None] = lambda count: None,
) -> Iterator[LinePart]:
    """Yields parts of as many lines as `lines_after` says for the lines before, until all files
    end; the last may have fewer.

    Where so many lines have more than `most_bytes`, `lines_that_fit` says how many a part gets,
    given its first bytes in the files and the number of its first line. `advance` is given the
    bytes that were passed.
    """
    with ExitStack() as opened:
        try:
            for path in files:
                regular_file_status(path)
            handles = [opened.enter_context(path.open("rb")) for path in files]
        except FileNotFoundError as error:
            raise UserError(
                f"{error.filename}: no such file; check its name and its folder"
            ) from None
        places, first_line = [0] * len(files), 1
        while True:
            lines = lines_after(first_line - 1)
            part = _next_part(files, handles, places, first_line, lines, most_bytes)
            if part is None:
                fewer = lines_that_fit(places, first_line)
                part = _next_part(files, handles, places, first_line, fewer)
            assert part
            if not part.lines:
                return
            yield part
            advance(part.bytes)
            places, first_line = [end for _, end in part.ranges], first_line + part.lines


def _next_part(
    files: Sequence[Path],
    handles: Sequence[BufferedReader],
    places: Sequence[int],
    first_line: int,
    lines: int,
    most_bytes: int | None = None,
) -> LinePart | None:
    """Returns the lines from these places on; None: they have more than `most_bytes`."""
    found = []
    for handle, place in zip(handles, places, strict=True):
        found.append(_skip(handle, place, lines, most_bytes))
    passed = sum(end - place for place, (end, _) in zip(places, found, strict=True))
    if most_bytes is not None and passed > most_bytes:
        return None
    counts = [count for _, count in found]
    if min(counts) < max(counts):
        for path, handle, place in zip(files, handles, places, strict=True):
            _refuse_broken_text(path, handle, place, first_line, lines)
        shorter, longer = files[counts.index(min(counts))], files[counts.index(max(counts))]
        raise unequal_sides(shorter, longer, first_line + min(counts) - 1)
    ends = [end for end, _ in found]
    return LinePart(first_line, counts[0], list(zip(places, ends, strict=True)))


def _refuse_broken_text(
    path: Path, file: BufferedReader, place: int, first_line: int, lines: int
) -> None:
    """Raises UserError if these lines are no text: that would explain why there are too few."""
    file.seek(place)
    for _ in islice(decode_lines(file, str(path), first_line), lines):
        pass


def _skip(file: BufferedReader, begin: int, lines: int, most_bytes: int | None) -> tuple[int, int]:
    """Returns where the next line begins after so many, and how many there were.

    It goes no further than it needs to pass `most_bytes`: the rest may be terabytes.
    """
    file.seek(begin)
    found, place, last = 0, begin, b"\n"
    while block := file.read(BLOCK_BYTES):
        line_feeds = block.count(b"\n")
        if found + line_feeds >= lines:
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            return place + int(ends[lines - found - 1]) + 1, lines
        found += line_feeds
        place += len(block)
        last = block[-1:]
        if most_bytes is not None and place - begin > most_bytes:
            break
    return place, found + (last != b"\n")
