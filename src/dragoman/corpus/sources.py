"""Reads the sources of a recipe: settings come in, sentence pairs go out, in a fixed order."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from dragoman.config import CorpusSource, DataSettings, PhrasebookSource, TextSource
from dragoman.corpus import phrasebook
from dragoman.corpus.pair import Pair
from dragoman.corpus.text import read_lines
from dragoman.errors import UserError

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def sources_of(data: DataSettings, split: Split) -> tuple[CorpusSource, ...]:
    return {"train": data.train, "validation": data.validation, "test": data.test}[split]


def input_files(data: DataSettings, *splits: Split) -> list[Path]:
    """Every file that the sources of these splits read, in order, each once."""
    files = [
        Path(data.folder) / name
        for split in splits
        for source in sources_of(data, split)
        if isinstance(source, TextSource)
        for name in (source.source, source.target)
    ]
    return list(dict.fromkeys(files))


def describe(source: CorpusSource) -> str:
    if isinstance(source, TextSource):
        return f"{source.source} + {source.target}"
    return f"phrasebook, {source.pairs:,} pairs, seed {source.seed}"


def read_pairs(data: DataSettings, split: Split) -> Iterator[Pair]:
    """All pairs of a split, source after source."""
    for source in sources_of(data, split):
        yield from read_source(source, data, split)


def read_source(source: CorpusSource, data: DataSettings, split: Split) -> Iterator[Pair]:
    """Its pairs with the data's source language first, white space at the ends removed."""
    if isinstance(source, TextSource):
        pairs = _aligned(Path(data.folder) / source.source, Path(data.folder) / source.target)
    else:
        pairs = _phrases(source, data, split)
    if is_reversed(source, data):
        return (Pair(target, source) for source, target in pairs)
    return pairs


def is_reversed(source: CorpusSource, data: DataSettings) -> bool:
    return source.languages == f"{data.target_language}-{data.source_language}"


def languages_of(source: CorpusSource, data: DataSettings) -> tuple[str, str]:
    """Of the pairs as `read_source` gives them."""
    if not source.languages or is_reversed(source, data):
        return data.source_language, data.target_language
    first, second = source.languages.split("-")
    return first, second


def _phrases(source: PhrasebookSource, data: DataSettings, split: Split) -> Iterator[Pair]:
    if (source.languages or f"{data.source_language}-{data.target_language}") != "en-de":
        raise UserError(
            "the built-in phrasebook is English-German; set data.source_language to en "
            "and data.target_language to de, or use another source"
        )
    for english, german in phrasebook.sentence_pairs(split, source.pairs, source.seed):
        yield Pair(english, german)


def _aligned(source_file: Path, target_file: Path) -> Iterator[Pair]:
    count = 0
    for source, target in zip_longest(read_lines(source_file), read_lines(target_file)):
        if source is None or target is None:
            shorter, longer = (
                (source_file, target_file) if source is None else (target_file, source_file)
            )
            raise UserError(
                f"{shorter} ends after line {count}, but {longer} goes on; "
                "both sides need the same number of lines, so mend the files and run again"
            )
        count += 1
        yield Pair(source, target)
    if not count:
        raise UserError(f"{source_file} and {target_file} are empty; name files with sentences")
