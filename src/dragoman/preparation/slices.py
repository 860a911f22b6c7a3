"""The training corpus as slices, cut at the same places with the same numbers on every machine.

A slice of plain lines is a range of bytes of each file, which whoever cleans it reads. Text that
can be read from its beginning alone (compressed files, translation memories, message catalogs, the
phrasebook) is read once, here, and travels with its slice.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dragoman.config import CorpusSource, DataSettings
from dragoman.console import Progress
from dragoman.corpus.cleaning import Languages
from dragoman.corpus.line_parts import LinePart, line_parts
from dragoman.corpus.pair import Pair
from dragoman.corpus.sources import (
    languages_of,
    no_pairs,
    plain_files,
    read_lines_of,
    read_source,
)
from dragoman.corpus.text import decode_lines
from dragoman.preparation.stage import Stage, as_text, from_text
from dragoman.preparation.task import FileRange, Given, Input

FIRST_PAIRS, PAIRS_PER_SLICE = 25_000, 100_000
CHARACTERS_PER_SLICE = 200_000_000
"""Bounds the memory that a slice of very long lines takes; sentences never come near it."""


def pairs_after(before: int) -> int:
    """Returns how many pairs a slice has that follows so many of its source.

    An eighth of them: so the cores get about equal shares of a small corpus, too, although nobody
    who cuts it knows how many cores or pairs there are.
    """
    return min(PAIRS_PER_SLICE, max(FIRST_PAIRS, before // 8))


class Share(NamedTuple):
    """Slice n belongs to the share whose number is n modulo the count of shares."""

    number: int
    shares: int

    def has(self, slice_number: int) -> bool:
        return slice_number % self.shares == self.number


class Slice(NamedTuple):
    """A slice before it is read."""

    number: int
    source_number: int
    """Which of the recipe's training sources it belongs to; a slice belongs to one."""
    languages: Languages
    texts: list[Input]
    files: list[Path]
    """What `texts` are lines of; none: they are the two sides of pairs that were read already."""
    first_line: int = 1


def read_slice(part: Slice, source: CorpusSource, data: DataSettings) -> list[Pair]:
    contents = [text.read() for text in part.texts]
    if not part.files:
        source_text, target_text = contents
        return from_text(source_text, target_text)
    lines = [
        decode_lines(BytesIO(content), str(file), part.first_line)
        for content, file in zip(contents, part.files, strict=True)
    ]
    return list(read_lines_of(source, data, part.files, lines, part.first_line))


def slices(
    data: DataSettings,
    index: Stage,
    is_wanted: Callable[[int], bool],
    refuse_changed: Callable[[], None] = lambda: None,
) -> Iterator[Slice]:
    """Yields the wanted slices in order. All are counted, so that numbers never change.

    `refuse_changed` is called after text was read here, to raise an error if it is another now.
    """
    number = 0
    for source_number, source in enumerate(data.train):
        parts = _parts(source, source_number, data, index, refuse_changed)
        for texts, files, first_line in parts:
            if is_wanted(number):
                languages = languages_of(source, data)
                yield Slice(number, source_number, languages, texts(), files, first_line)
            number += 1


def count_slices(
    data: DataSettings, index: Stage, refuse_changed: Callable[[], None] = lambda: None
) -> int:
    count = 0

    def none(number: int) -> bool:
        nonlocal count
        count = number + 1
        return False

    for _ in slices(data, index, none, refuse_changed):
        pass
    return count


_Part = tuple[Callable[[], list[Input]], list[Path], int]


def _parts(
    source: CorpusSource,
    source_number: int,
    data: DataSettings,
    index: Stage,
    refuse_changed: Callable[[], None],
) -> Iterator[_Part]:
    files = plain_files(source, data)
    if files is not None:
        for part in _index(source, source_number, files, data, index, refuse_changed):
            yield _ranges_of(part, files), files, part.first_line
        return
    pairs, before = read_source(source, data, "train"), 0
    while content := _take(pairs, before):
        refuse_changed()
        yield _text_of(content), [], 1
        before += len(content)


def _ranges_of(part: LinePart, files: list[Path]) -> Callable[[], list[Input]]:
    return lambda: [
        FileRange(file, begin, end) for file, (begin, end) in zip(files, part.ranges, strict=True)
    ]


def _text_of(pairs: list[Pair]) -> Callable[[], list[Input]]:
    return lambda: [Given(side.encode()) for side in as_text(pairs).values()]


def _index(
    source: CorpusSource,
    source_number: int,
    files: list[Path],
    data: DataSettings,
    index: Stage,
    refuse_changed: Callable[[], None],
) -> list[LinePart]:
    """Returns the slices of a source of plain lines, which are looked for once."""
    if not index.is_done(source_number):
        size = sum(file.stat().st_size for file in files if file.exists())
        with Progress("looking for slices", "bytes", size) as progress:
            found = line_parts(
                files,
                pairs_after,
                CHARACTERS_PER_SLICE,  # fewer bytes are not more characters
                lambda places, first_line: _lines_that_fit(places, first_line, source, files, data),
                progress.advance,
            )
            parts = [[part.first_line, part.lines, part.ranges] for part in found]
        if not parts:
            raise no_pairs(source, data)
        refuse_changed()
        index.finish(source_number, {"slices": parts}, {})
    return [
        LinePart(first_line, lines, [(begin, end) for begin, end in ranges])
        for first_line, lines, ranges in index.record(source_number)["slices"]
    ]


def _lines_that_fit(
    places: Sequence[int],
    first_line: int,
    source: CorpusSource,
    files: list[Path],
    data: DataSettings,
) -> int:
    """Returns how many lines `_take` would take from these places on."""
    with ExitStack() as opened:
        lines = []
        for file, place in zip(files, places, strict=True):
            handle = opened.enter_context(file.open("rb"))
            handle.seek(place)
            lines.append(decode_lines(handle, str(file), first_line))
        pairs = read_lines_of(source, data, files, lines, first_line)
        return _count_that_fit(islice(pairs, pairs_after(first_line - 1)))


def _take(pairs: Iterator[Pair], before: int) -> list[Pair]:
    taken: list[Pair] = []
    _count_that_fit(_noted(islice(pairs, pairs_after(before)), taken))
    return taken


def _noted(pairs: Iterator[Pair], taken: list[Pair]) -> Iterator[Pair]:
    for pair in pairs:
        taken.append(pair)
        yield pair


def _count_that_fit(pairs: Iterator[Pair]) -> int:
    """Returns how many pairs there are, up to the one with which they are too long."""
    count = characters = 0
    for pair in pairs:
        count += 1
        characters += len(pair.source) + len(pair.target)
        if characters > CHARACTERS_PER_SLICE:
            break
    return count
