"""Reads the sources of a recipe: settings come in, sentence pairs go out, in a fixed order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from dragoman.config import (
    CorpusSource,
    DataSettings,
    GettextSource,
    JsonlSource,
    MtdataSource,
    PhrasebookSource,
    SacrebleuSource,
    TextSource,
    TmxSource,
    TsvSource,
)
from dragoman.corpus.download import fetch
from dragoman.corpus.gettext import find_catalogs, read_catalog
from dragoman.corpus.jsonl import jsonl_pairs
from dragoman.corpus.pair import Pair
from dragoman.corpus.public import fetch_public, fetch_test_set
from dragoman.corpus.text import COMPRESSIONS, read_raw_lines
from dragoman.corpus.tmx import read_tmx
from dragoman.corpus.tsv import tsv_pairs
from dragoman.errors import UserError

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def sources_of(data: DataSettings, split: Split) -> tuple[CorpusSource, ...]:
    return {"train": data.train, "validation": data.validation, "test": data.test}[split]


def input_files(data: DataSettings, *splits: Split) -> list[Path]:
    """Returns every file that the sources of these splits read, in order, each once."""
    files = [
        file
        for split in splits
        for source in sources_of(data, split)
        for file in files_of(source, data)
    ]
    return list(dict.fromkeys(files))


def files_of(source: CorpusSource, data: DataSettings) -> list[Path]:
    """Returns the files of one source; downloads those at an address unless they are cached."""
    languages = own_languages(source, data)
    match source:
        case TextSource():
            hashes = source.sha256 or (None, None)
            both = zip((source.source, source.target), hashes, strict=True)
            return [_local(name, data, sha256) for name, sha256 in both]
        case TsvSource() | JsonlSource() | TmxSource():
            return [_local(source.file, data)]
        case GettextSource():
            return _catalogs(source, data)
        case MtdataSource():
            return list(fetch_public(source.name, languages, data.cache_folder, data.mirror))
        case SacrebleuSource():
            pair = "-".join(languages)
            return list(fetch_test_set(source.name, pair, data.cache_folder, data.mirror))
        case PhrasebookSource():
            return []


def local_files(data: DataSettings, *splits: Split) -> list[Path]:
    """Returns the files and folders that the sources name by their paths, each once; nothing is
    downloaded."""
    found = []
    for source in (source for split in splits for source in sources_of(data, split)):
        match source:
            case TextSource():
                names = [source.source, source.target]
            case TsvSource() | JsonlSource() | TmxSource():
                names = [source.file]
            case GettextSource():
                names = [source.folder]
            case _:
                names = []
        found += [Path(data.folder) / name for name in names if "://" not in name]
    return list(dict.fromkeys(found))


def read_source(source: CorpusSource, data: DataSettings, split: Split) -> Iterator[Pair]:
    """Yields the pairs of a source, the data's source language first, stripped."""
    is_empty = True
    for pair in _in_order(_read(source, data, split), source, data):
        is_empty = False
        yield pair
    if is_empty:
        raise no_pairs(source, data)


def no_pairs(source: CorpusSource, data: DataSettings) -> UserError:
    languages = " and ".join(own_languages(source, data))
    return UserError(
        f"{describe(source)}: has no pairs in {languages}; name another source or set its languages"
    )


def plain_files(source: CorpusSource, data: DataSettings) -> list[Path] | None:
    """Returns the files of a source that can be read from any line on; None: only from its start.

    Each of its lines is a pair, or one side of it, and no file is compressed.
    """
    if isinstance(source, TmxSource | GettextSource | PhrasebookSource):
        return None
    files = files_of(source, data)
    return None if any(file.name.endswith(COMPRESSIONS) for file in files) else files


def read_lines_of(
    source: CorpusSource,
    data: DataSettings,
    files: Sequence[Path],
    lines: Sequence[Iterable[str]],
    first_line: int,
) -> Iterator[Pair]:
    """Yields the pairs of some lines, as `read_source` does: the same lines of each file, without
    line feeds, of which the first has this number in its file."""
    return _in_order(_pairs_of_lines(source, files, lines, first_line), source, data)


def _in_order(pairs: Iterable[Pair], source: CorpusSource, data: DataSettings) -> Iterator[Pair]:
    if is_reversed(source, data):
        return (Pair(second, first) for first, second in pairs)
    return iter(pairs)


def is_reversed(source: CorpusSource, data: DataSettings) -> bool:
    return source.languages == f"{data.target_language}-{data.source_language}"


def own_languages(source: CorpusSource, data: DataSettings) -> tuple[str, str]:
    """Returns the languages in the order of the source's own columns or files."""
    first, _, second = source.languages.partition("-")
    return (first, second) if first else (data.source_language, data.target_language)


def languages_of(source: CorpusSource, data: DataSettings) -> tuple[str, str]:
    """Returns the languages of the pairs that `read_source` yields."""
    first, second = own_languages(source, data)
    return (second, first) if is_reversed(source, data) else (first, second)


def describe(source: CorpusSource) -> str:
    match source:
        case TextSource():
            return f"{source.source} + {source.target}"
        case TsvSource() | JsonlSource() | TmxSource():
            return source.file
        case GettextSource():
            return f"message catalogs in {source.folder}"
        case MtdataSource() | SacrebleuSource():
            return f"{source.name} ({source.kind})"
        case PhrasebookSource():
            return f"phrasebook, {source.pairs:,} pairs, seed {source.seed}"


def _read(source: CorpusSource, data: DataSettings, split: Split) -> Iterator[Pair]:
    files = files_of(source, data)
    match source:
        case TmxSource():
            return read_tmx(files[0], *own_languages(source, data))
        case GettextSource():
            return (pair for file in files for pair in read_catalog(file))
        case PhrasebookSource():
            return _phrases(source, data, split)
        case _:
            return _pairs_of_lines(source, files, [read_raw_lines(file) for file in files], 1)


def _pairs_of_lines(
    source: CorpusSource, files: Sequence[Path], lines: Sequence[Iterable[str]], first_line: int
) -> Iterator[Pair]:
    match source:
        case TsvSource():
            columns = source.source_column, source.target_column
            return tsv_pairs(lines[0], files[0], *columns, first_line)
        case JsonlSource():
            keys = source.source_key, source.target_key
            return jsonl_pairs(map(str.strip, lines[0]), files[0], *keys, first_line)
        case _:
            return _aligned(files, lines, first_line)


def _local(name: str, data: DataSettings, sha256: str | None = None) -> Path:
    if "://" in name:
        return fetch(name, data.cache_folder, sha256=sha256, mirror=data.mirror)
    return Path(data.folder) / name


def _catalogs(source: GettextSource, data: DataSettings) -> list[Path]:
    folder = Path(data.folder) / source.folder
    language = own_languages(source, data)[1]
    found = find_catalogs(folder, language)
    if not found:
        raise UserError(
            f"{folder}: holds no message catalogs of language {language}; name a folder with "
            f"{language}/LC_MESSAGES/*.mo or {language}.po in it"
        )
    return found


def _phrases(source: PhrasebookSource, data: DataSettings, split: Split) -> Iterator[Pair]:
    if own_languages(source, data) != ("en", "de"):
        raise UserError(
            "the built-in phrasebook is English-German; set data.source_language to en "
            "and data.target_language to de, or languages of this source to en-de"
        )
    # Its tables take a tenth of a second to build, in each process that prepares data.
    from dragoman.corpus import phrasebook  # noqa: PLC0415

    for english, german in phrasebook.sentence_pairs(split, source.pairs, source.seed):
        yield Pair(english, german)


def _aligned(
    files: Sequence[Path], lines: Sequence[Iterable[str]], first_line: int
) -> Iterator[Pair]:
    both = zip_longest(*(map(str.strip, of_file) for of_file in lines))
    for number, (source, target) in enumerate(both, start=first_line):
        if source is None or target is None:
            shorter, longer = files if source is None else reversed(files)
            raise unequal_sides(shorter, longer, number - 1)
        yield Pair(source, target)


def unequal_sides(shorter: Path, longer: Path, last_line: int) -> UserError:
    return UserError(
        f"{shorter} ends after line {last_line}, but {longer} continues; "
        "both sides need the same number of lines, so correct the files and run again"
    )
