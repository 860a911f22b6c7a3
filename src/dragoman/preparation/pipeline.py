"""The stages in order: clean, decide, learn the pieces, encode, and write the passport."""

import hashlib
import os
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece

from dragoman import __version__
from dragoman.config import Config, PhrasebookSource
from dragoman.console import say
from dragoman.corpus.cleaning import EXAMPLES_KEPT, clean, keys, normalized
from dragoman.corpus.pair import Pair
from dragoman.corpus.sources import SPLITS, Split, describe, input_files, read_pairs, sources_of
from dragoman.errors import RunError, UserError, storage_errors
from dragoman.preparation.duplicates import Flags, decide
from dragoman.preparation.encoding import ShardFigures, SideFigures, encode_shard, repeats_of
from dragoman.preparation.processes import Advance, in_parallel
from dragoman.preparation.slices import Share, count_slices, slices
from dragoman.preparation.stage import Stage, key_of
from dragoman.rundir import read_json, sha256_of, write_json, write_whole
from dragoman.shards.passport import (
    PASSPORT_NAME,
    InputFile,
    Passport,
    PreparedData,
    Side,
    SourceRecord,
    SplitRecord,
)
from dragoman.tokenizer import Tokenizer, WordCache, learn_tokenizer

INPUTS_NAME = "inputs.json"
# Below this much text, starting processes costs more than they save.
BYTES_WORTH_A_PROCESS = 20_000_000
HELD_OUT: tuple[Split, ...] = ("validation", "test")


@dataclass(frozen=True)
class Plan:
    """Names and keys of all stages of a recipe."""

    config: Config
    inputs: list[InputFile]

    @property
    def folder(self) -> Path:
        return self.config.prepared_folder

    @cached_property
    def clean(self) -> Stage:
        data = self.config.data
        sources = [s.model_dump(mode="json", exclude={"weight"}) for s in data.train]
        languages = data.source_language, data.target_language
        cleaning = self.config.cleaning.model_dump(mode="json", exclude={"drop_leaks"})
        inputs = self._hashes("train")
        return self._stage("clean", __version__, sources, languages, cleaning, inputs)

    @cached_property
    def held_out(self) -> Stage:
        data = self.config.data
        sources = [s.model_dump(mode="json") for split in HELD_OUT for s in sources_of(data, split)]
        return self._stage("held-out", __version__, sources, self._hashes(*HELD_OUT))

    @cached_property
    def kept(self) -> Stage:
        leaks = self.config.cleaning.drop_leaks
        return self._stage("kept", self.clean.folder.name, leaks and self.held_out.folder.name)

    @cached_property
    def tokenizer(self) -> Stage:
        settings = self.config.tokenizer
        given = sha256_of(Path(settings.model)) if settings.model else ""
        learned = "" if given else (settings.model_dump(mode="json"), self.kept.folder.name)
        return self._stage("tokenizer", given, learned)

    @cached_property
    def shards(self) -> Stage:
        weights = [source.weight for source in self.config.data.train]
        return self._stage(
            "shards",
            *(self.kept.folder.name, self.held_out.folder.name, self.tokenizer.folder.name),
            *(weights, self.config.data.max_length),
        )

    @property
    def tokenizer_file(self) -> Path:
        return self.tokenizer.folder / "tokenizer.model"

    @property
    def stages(self) -> list[Stage]:
        return [self.clean, self.held_out, self.kept, self.tokenizer, self.shards]

    def _stage(self, name: str, *depends_on: object) -> Stage:
        return Stage(self.folder / f"{name}-{key_of(*depends_on)}")

    def _hashes(self, *splits: Split) -> list[str]:
        by_path = {file.path: file.sha256 for file in self.inputs}
        return [by_path[str(path)] for path in input_files(self.config.data, *splits)]


def prepare(config: Config) -> PreparedData:
    """Make the prepared data of a recipe, or find it made already."""
    plan = make_plan(config)
    if current := _current(plan):
        return current
    cores = _cores(plan)
    with storage_errors(plan.folder, "preparing data"):
        in_parallel(clean_share, config, cores, "cleaning", total=None)
        return _join(plan, cores)


def join(config: Config) -> PreparedData:
    """Finish what all shares have cleaned, here or on other machines."""
    plan = make_plan(config)
    missing = [n for n in range(count_slices(config.data)) if not plan.clean.is_done(n)]
    if missing:
        raise RunError(
            f"{plan.clean.folder}: {len(missing)} slices are not clean yet, the first of them is "
            f"number {missing[0]}; run every --part to its end, then --join again"
        )
    with storage_errors(plan.folder, "preparing data"):
        return _join(plan, _cores(plan))


def clean_share(config: Config, share: Share, advance: Advance) -> None:
    """Clean the slices of a share that are not clean yet. Independent of all other shares."""
    stage = make_plan(config).clean
    for part in slices(config.data, lambda n: share.has(n) and not stage.is_done(n)):
        cleaned = clean(part.pairs, config.cleaning, part.languages)
        stage.finish(
            part.number,
            record={
                "source": part.source_number,
                "pairs_in": len(part.pairs),
                "pairs": len(cleaned.pairs),
                "dropped": cleaned.dropped,
                "examples": cleaned.examples,
            },
            contents={
                "source": _text(pair.source for pair in cleaned.pairs),
                "target": _text(pair.target for pair in cleaned.pairs),
                "keys": keys(cleaned.pairs, config.cleaning).tobytes(),
            },
        )
        advance(len(part.pairs))


def encode_share(config: Config, share: Share, advance: Advance) -> None:
    """Encode the kept pairs of a share's slices that are not encoded yet."""
    plan = make_plan(config)
    tokenizer = Tokenizer.load(plan.tokenizer_file)
    words = WordCache(tokenizer)
    for number in plan.clean.numbers():
        if not share.has(number) or plan.shards.is_done(number):
            continue
        kept = np.fromfile(plan.kept.file(number, "flags"), dtype=np.bool_)
        of_slice = _keys(plan.clean, number)
        weight = config.data.train[plan.clean.record(number)["source"]].weight
        figures = encode_shard(
            [pair for pair, stays in zip(_pairs(plan.clean, number), kept, strict=True) if stays],
            repeats_of(of_slice[kept], weight),
            tokenizer,
            words,
            config.data.max_length,
            plan.shards.folder,
            stem=f"train-{number:05d}",
        )
        plan.shards.finish(number, figures.to_json(), {})
        advance(len(of_slice))


def dropped_examples(config: Config) -> dict[str, list[Pair]]:
    """Some dropped pairs for each reason, as they were read."""
    plan = make_plan(config)
    examples: dict[str, list[Pair]] = {}
    for stage in (plan.clean, plan.kept):
        for number in stage.numbers():
            for reason, pairs in stage.record(number)["examples"].items():
                shown = examples.setdefault(reason, [])
                shown += [Pair(*pair) for pair in pairs[: EXAMPLES_KEPT - len(shown)]]
    return examples


def make_plan(config: Config) -> Plan:
    folder = config.prepared_folder
    known = folder / PASSPORT_NAME, folder / INPUTS_NAME
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; set data.prepared to a folder")
    if folder.is_dir() and any(folder.iterdir()) and not any(path.exists() for path in known):
        raise UserError(
            f"{folder}: holds files that are not prepared data, and nothing was touched; "
            "set data.prepared to another folder"
        )
    return Plan(config, _input_files(config))


def _current(plan: Plan) -> PreparedData | None:
    if not (plan.folder / PASSPORT_NAME).exists():
        return None
    prepared = PreparedData.open(plan.folder)
    return prepared if prepared.passport.key == plan.shards.folder.name else None


def _input_files(config: Config) -> list[InputFile]:
    """Every file that is read, with its hash; computed once for a size and time of change.

    Files that are gone are taken as they were: prepared data serves where the raw text is not.
    """
    path = config.prepared_folder / INPUTS_NAME
    before = {
        file["path"]: InputFile.model_validate(file)
        for file in (read_json(path)["files"] if path.exists() else [])
    }
    now = [_input_file(file, before.get(str(file))) for file in _inputs(config)]
    if now != list(before.values()) or not path.exists():
        write_json(path, {"files": [file.model_dump() for file in now]})
    return now


def _inputs(config: Config) -> list[Path]:
    given = [Path(config.tokenizer.model)] if config.tokenizer.model else []
    return input_files(config.data, *SPLITS) + given


def _input_file(path: Path, before: InputFile | None) -> InputFile:
    try:
        stat = path.stat()
        if before and (before.bytes, before.modified_ns) == (stat.st_size, stat.st_mtime_ns):
            return before
        return InputFile(
            path=str(path),
            bytes=stat.st_size,
            modified_ns=stat.st_mtime_ns,
            sha256=sha256_of(path),
        )
    except FileNotFoundError:
        if before:
            return before
        raise UserError(f"{path}: no such file; bring it there or set data.folder") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); bring it again") from error


def _cores(plan: Plan) -> int:
    phrases = sum(s.pairs for s in plan.config.data.train if isinstance(s, PhrasebookSource))
    size = sum(file.bytes for file in plan.inputs) + 100 * phrases
    return max(1, min(os.cpu_count() or 1, size // BYTES_WORTH_A_PROCESS))


def _join(plan: Plan, cores: int) -> PreparedData:
    """All that needs the whole corpus, and what follows from it."""
    config = plan.config
    _write_held_out(plan)
    total = _decide(plan)
    if not total:
        raise UserError("no training pair is left after cleaning; check the files of data.train")
    _learn(plan, total)
    in_parallel(encode_share, config, cores, "encoding", total)
    tokenizer = Tokenizer.load(plan.tokenizer_file)
    passport = _passport(plan, tokenizer)
    for split in ("train", "validation"):
        record = passport.splits[split]
        if not record.pairs_kept:
            raise UserError(
                f"no {split} pair is left after cleaning: {record.dropped}; "
                f"check the files of data.{split} and data.max_length"
            )
    write_whole(plan.folder / PASSPORT_NAME, passport.model_dump_json(indent=2) + "\n")
    _sweep(plan)
    return PreparedData(plan.folder, passport)


def _write_held_out(plan: Plan) -> None:
    """Every line of validation and test, since a score holds for a whole set only."""
    for number, split in enumerate(HELD_OUT):
        if plan.held_out.is_done(number) or not sources_of(plan.config.data, split):
            continue
        pairs = list(read_pairs(plan.config.data, split))
        plan.held_out.finish(
            number,
            {"split": split, "pairs": len(pairs)},
            {
                "source": _text(pair.source for pair in pairs),
                "target": _text(pair.target for pair in pairs),
            },
        )


def _decide(plan: Plan) -> int:
    """Mark duplicates and leaks; the number of clean pairs before."""
    numbers = plan.clean.numbers()
    cleaning = plan.config.cleaning
    if not all(map(plan.kept.is_done, numbers)):
        held_out = [pair for n in plan.held_out.numbers() for pair in _pairs(plan.held_out, n)]
        normal = [normalized(pair, cleaning) for pair in held_out] if cleaning.drop_leaks else []
        decision = decide(
            [_keys(plan.clean, number) for number in numbers],
            keys(normal, cleaning),
            drop_duplicates=cleaning.duplicates != "keep",
        )
        for number, duplicate, leak in zip(numbers, *decision, strict=True):
            dropped = {"duplicate": int(duplicate.sum()), "in validation or test": int(leak.sum())}
            plan.kept.finish(
                number,
                {
                    "dropped": {reason: count for reason, count in dropped.items() if count},
                    "examples": _examples(plan, number, duplicate, leak),
                },
                {"flags": (~(duplicate | leak)).tobytes()},
            )
    return sum(plan.clean.record(number)["pairs"] for number in numbers)


def _examples(plan: Plan, number: int, duplicate: Flags, leak: Flags) -> dict[str, list[Pair]]:
    wanted = {
        "duplicate": set(np.flatnonzero(duplicate)[:EXAMPLES_KEPT].tolist()),
        "in validation or test": set(np.flatnonzero(leak)[:EXAMPLES_KEPT].tolist()),
    }
    if not any(wanted.values()):
        return {}
    pairs = _pairs(plan.clean, number)
    return {
        reason: [pairs[place] for place in sorted(places)]
        for reason, places in wanted.items()
        if places
    }


def _learn(plan: Plan, total: int) -> None:
    settings = plan.config.tokenizer
    if plan.tokenizer_file.exists():
        return
    if settings.model:
        tokenizer = Tokenizer.load(Path(settings.model))
    else:
        say(f"learning {settings.vocabulary:,} subword pieces")
        every = max(1, -(-2 * total // settings.sample_lines))
        tokenizer = learn_tokenizer(_sample(plan, every), settings)
    write_whole(plan.tokenizer_file, tokenizer.model)


def _sample(plan: Plan, every: int) -> Iterator[str]:
    """Both sides of each so many-th kept pair."""
    seen = 0
    for number in plan.clean.numbers():
        kept = np.fromfile(plan.kept.file(number, "flags"), dtype=np.bool_)
        for pair, stays in zip(_pairs(plan.clean, number), kept, strict=True):
            if stays:
                if seen % every == 0:
                    yield from pair
                seen += 1


def _passport(plan: Plan, tokenizer: Tokenizer) -> Passport:
    data = plan.config.data
    train = ShardFigures()
    for number in plan.clean.numbers():
        train.add(ShardFigures.from_json(plan.shards.record(number)))
    splits = {"train": _train_record(plan, train)}
    for number, split in enumerate(HELD_OUT):
        if sources_of(data, split):
            splits[split] = _held_out_record(plan, number, split, tokenizer)
    return Passport(
        key=plan.shards.folder.name,
        source_language=data.source_language,
        target_language=data.target_language,
        vocabulary=tokenizer.size,
        used_pieces=len(train.used_pieces),
        tokenizer_file=str(plan.tokenizer_file.relative_to(plan.folder)),
        tokenizer_sha256=hashlib.sha256(tokenizer.model).hexdigest(),
        inputs=plan.inputs,
        splits=splits,
        command=sys.argv,
        versions={
            "dragoman": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "sentencepiece": sentencepiece.__version__,
        },
    )


def _train_record(plan: Plan, figures: ShardFigures) -> SplitRecord:
    sources = [Counter[str]() for _ in plan.config.data.train]
    dropped = [Counter[str]() for _ in plan.config.data.train]
    bytes_of = Counter[str]()
    for number in plan.clean.numbers():
        record, kept, shard = (s.record(number) for s in (plan.clean, plan.kept, plan.shards))
        source = record["source"]
        for drops in (record["dropped"], kept["dropped"], shard["dropped"]):
            dropped[source].update(drops)
        sources[source]["in"] += record["pairs_in"]
        for side in ("source", "target"):
            bytes_of[side] += plan.clean.file(number, side).stat().st_size
    records = [
        SourceRecord(
            description=describe(source),
            weight=source.weight,
            pairs_in=counts["in"],
            pairs_kept=counts["in"] - sum(drops.values()),
            dropped=dict(drops),
        )
        for source, counts, drops in zip(plan.config.data.train, sources, dropped, strict=True)
    ]
    return SplitRecord(
        pairs_in=sum(record.pairs_in for record in records),
        pairs_kept=sum(record.pairs_kept for record in records),
        pairs_per_epoch=figures.pairs,
        dropped=dict(sum(dropped, Counter[str]())),
        sources=records,
        source=_side("", bytes_of["source"], figures.source),
        target=_side("", bytes_of["target"], figures.target),
        shards=figures.files,
    )


def _held_out_record(plan: Plan, number: int, split: Split, tokenizer: Tokenizer) -> SplitRecord:
    pairs = _pairs(plan.held_out, number)
    figures = encode_shard(
        pairs,
        None,
        tokenizer,
        WordCache(tokenizer),
        plan.config.data.max_length,
        plan.shards.folder,
        stem=split,
    )
    files = [plan.held_out.file(number, side) for side in ("source", "target")]
    names = [str(file.relative_to(plan.folder)) for file in files]
    return SplitRecord(
        pairs_in=len(pairs),
        pairs_kept=figures.pairs,
        pairs_per_epoch=figures.pairs,
        dropped=figures.dropped,
        sources=[],
        source=_side(names[0], files[0].stat().st_size, figures.source),
        target=_side(names[1], files[1].stat().st_size, figures.target),
        shards=figures.files,
    )


def _side(file: str, size: int, figures: SideFigures) -> Side:
    return Side(
        file=file,
        bytes=size,
        tokens=figures.tokens,
        unknown_tokens=figures.unknown_tokens,
        lengths=figures.lengths.tolist(),
    )


def _sweep(plan: Plan) -> None:
    """Remove the folders of stages that no longer count, and half files of processes killed."""
    counting = {stage.folder for stage in plan.stages}
    for path in plan.folder.iterdir():
        if path.is_dir() and path not in counting:
            shutil.rmtree(path, ignore_errors=True)
    for half in plan.folder.rglob(".*"):
        half.unlink(missing_ok=True)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _pairs(stage: Stage, number: int) -> list[Pair]:
    sides = (stage.file(number, side).read_bytes().decode() for side in ("source", "target"))
    lines = (side.split("\n")[:-1] for side in sides)
    return list(map(Pair, *lines))


def _keys(stage: Stage, number: int) -> npt.NDArray[np.uint64]:
    """Mapped, not read: of billions of pairs only a range of keys is looked at at once."""
    path = stage.file(number, "keys")
    if not path.stat().st_size:
        return np.empty(0, dtype=np.uint64)
    return np.memmap(path, dtype="<u8", mode="r")
