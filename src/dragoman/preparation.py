"""From a recipe to prepared data: clean text, tokenizer, shards and their passport.

The whole folder appears at once under its name. Preparing again with the same settings and
inputs changes nothing; with others it is made anew and replaces the old one when it is whole.
"""

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy
import sentencepiece

from dragoman import __version__
from dragoman.config import Config
from dragoman.console import Progress, say
from dragoman.corpus.filters import reason_to_drop
from dragoman.corpus.sources import SPLITS, Split, input_files, read_pairs, sources_of
from dragoman.errors import UserError, storage_errors
from dragoman.rundir import sha256_of, write_whole
from dragoman.shards.files import PairIds, write_shards
from dragoman.shards.passport import (
    PASSPORT_NAME,
    TOKENIZER_NAME,
    InputFile,
    Passport,
    PreparedData,
    Side,
    SplitRecord,
)
from dragoman.tokenizer import Tokenizer, learn_tokenizer

LINES_AT_ONCE = 20_000


def prepare(config: Config) -> PreparedData:
    """Make the prepared data of a recipe, or find it made already."""
    folder = config.prepared_folder
    if (folder / PASSPORT_NAME).exists():
        prepared = PreparedData.open(folder)
        if _is_current(prepared.passport, config):
            return prepared
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            f"{folder}: holds files that are not prepared data, and nothing was touched; "
            "set data.prepared to another folder"
        )

    with storage_errors(folder, "preparing data"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            passport = _prepare_into(beside, config)
            write_whole(beside / PASSPORT_NAME, passport.model_dump_json(indent=2))
            beside.chmod(0o755)
            _replace_folder(folder, beside)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    return PreparedData(folder, passport)


def _prepare_into(folder: Path, config: Config) -> Passport:
    inputs = [_input_file(path) for path in _inputs(config)]
    splits = [split for split in SPLITS if sources_of(config.data, split)]
    counts = {split: _write_text(folder, config, split) for split in splits}
    if not counts["train"]["kept"]:
        raise UserError("no training pair is left after cleaning; check the files of data.train")
    tokenizer = _tokenizer_for(folder, config, counts["train"]["kept"])
    write_whole(folder / TOKENIZER_NAME, tokenizer.model)
    records = {
        split: _write_split(folder, config, split, tokenizer, counts[split]) for split in splits
    }
    for split in ("train", "validation"):
        if not records[split].pairs_kept:
            raise UserError(
                f"no {split} pair is left after cleaning: {records[split].dropped}; "
                f"check the files of data.{split} and data.max_length"
            )
    return Passport(
        settings_sha256=_settings_sha256(config),
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        vocabulary=tokenizer.size,
        tokenizer_sha256=hashlib.sha256(tokenizer.model).hexdigest(),
        inputs=inputs,
        splits=records,
        versions={
            "dragoman": __version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "sentencepiece": sentencepiece.__version__,
        },
    )


def _settings_sha256(config: Config) -> str:
    settings = {
        "data": config.data.model_dump(mode="json", exclude={"prepared", "folder"}),
        "tokenizer": config.tokenizer.model_dump(mode="json"),
        "version": __version__,
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _is_current(passport: Passport, config: Config) -> bool:
    """Whether preparing again would give the same. Inputs that are gone cannot speak against it."""
    if passport.settings_sha256 != _settings_sha256(config):
        return False
    now_and_before = zip(_inputs(config), passport.inputs, strict=True)
    return all(_is_same(path, before) for path, before in now_and_before if path.exists())


def _is_same(path: Path, before: InputFile) -> bool:
    stat = path.stat()
    if stat.st_size != before.bytes:
        return False
    return stat.st_mtime_ns == before.modified_ns or sha256_of(path) == before.sha256


def _inputs(config: Config) -> list[Path]:
    given = [Path(config.tokenizer.model)] if config.tokenizer.model else []
    return input_files(config.data) + given


def _input_file(path: Path) -> InputFile:
    try:
        stat = path.stat()
        return InputFile(
            path=str(path),
            bytes=stat.st_size,
            modified_ns=stat.st_mtime_ns,
            sha256=sha256_of(path),
        )
    except OSError as error:
        raise UserError(
            f"{path}: no such file, or it cannot be read ({error.strerror}); bring it there or "
            "set data.folder"
        ) from None


def _text_file(folder: Path, config: Config, split: Split, side: str) -> Path:
    language = config.data.source_language if side == "source" else config.data.target_language
    # The side comes first, so that two sides of one language (paraphrase, spelling) stay apart.
    return folder / f"{split}.{side}.{language}"


def _write_text(folder: Path, config: Config, split: Split) -> Counter[str]:
    """Write both sides as text and count pairs: read, kept, and dropped under "drop: reason".

    Validation and test keep every line, since a score holds for a whole test set only.
    """
    counts: Counter[str] = Counter()
    with (
        _text_file(folder, config, split, "source").open(
            "w", encoding="utf-8", newline="\n"
        ) as source,
        _text_file(folder, config, split, "target").open(
            "w", encoding="utf-8", newline="\n"
        ) as target,
        Progress(f"reading {split} text", unit="pairs") as progress,
    ):
        for pair in read_pairs(config.data, split):
            counts["read"] += 1
            progress.advance()
            if split == "train" and (reason := reason_to_drop(pair)):
                counts[f"drop: {reason}"] += 1
                continue
            counts["kept"] += 1
            source.write(pair.source + "\n")
            target.write(pair.target + "\n")
    return counts


def _tokenizer_for(folder: Path, config: Config, pairs: int) -> Tokenizer:
    if config.tokenizer.model:
        return Tokenizer.load(Path(config.tokenizer.model))
    every = max(1, -(-2 * pairs // config.tokenizer.sample_lines))
    say(f"learning {config.tokenizer.vocabulary:,} subword pieces")
    texts = (
        line
        for side in ("source", "target")
        for line in islice(_lines(_text_file(folder, config, "train", side)), 0, None, every)
    )
    return learn_tokenizer(texts, config.tokenizer)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def _write_split(
    folder: Path, config: Config, split: Split, tokenizer: Tokenizer, counts: Counter[str]
) -> SplitRecord:
    source_file = _text_file(folder, config, split, "source")
    target_file = _text_file(folder, config, split, "target")
    tally: Counter[str] = Counter()

    def kept_pairs() -> Iterator[PairIds]:
        threads = os.cpu_count() or 1
        both = zip(_lines(source_file), _lines(target_file), strict=True)
        with Progress(f"encoding {split}", unit="pairs", total=counts["kept"]) as progress:
            while lines := list(islice(both, LINES_AT_ONCE)):
                sources = tokenizer.encode([source for source, _ in lines], threads)
                targets = tokenizer.encode([target for _, target in lines], threads)
                progress.advance(len(lines))
                for source, target in zip(sources, targets, strict=True):
                    if min(len(source), len(target)) < 2:  # the end piece alone
                        tally["drop: nothing but unknown to the tokenizer"] += 1
                    elif max(len(source), len(target)) > config.data.max_length:
                        tally["drop: longer than data.max_length"] += 1
                    else:
                        tally["kept"] += 1
                        tally["source tokens"] += len(source)
                        tally["target tokens"] += len(target)
                        tally["source unknown"] += source.count(tokenizer.unknown)
                        tally["target unknown"] += target.count(tokenizer.unknown)
                        yield PairIds(source, target)

    shards = write_shards(folder, split, kept_pairs(), tokenizer.size)
    dropped = {
        name.removeprefix("drop: "): number
        for name, number in (counts + tally).items()
        if name.startswith("drop: ")
    }

    def side(name: str, file: Path) -> Side:
        return Side(
            file=file.name,
            bytes=file.stat().st_size,
            sha256=sha256_of(file),
            tokens=tally[f"{name} tokens"],
            unknown_tokens=tally[f"{name} unknown"],
        )

    return SplitRecord(
        pairs_in=counts["read"],
        pairs_kept=tally["kept"],
        dropped=dropped,
        source=side("source", source_file),
        target=side("target", target_file),
        shards=shards,
    )


def _replace_folder(folder: Path, new: Path) -> None:
    if folder.exists():
        old = folder.with_name(f".{folder.name}-replaced-{os.getpid()}")
        folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        new.rename(folder)
