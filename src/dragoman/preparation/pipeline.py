"""Runs the stages in order: clean, decide, learn the pieces, encode, write the passport."""

import logging
import os
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.config import Config, PhrasebookSource
from dragoman.console import waiting
from dragoman.corpus.cleaning import EXAMPLES_KEPT, clean, keys, normalized
from dragoman.corpus.pair import Pair
from dragoman.corpus.sources import Split, read_source, sources_of
from dragoman.errors import RunError, UserError, storage_errors
from dragoman.preparation.corpus_size import expected_pairs
from dragoman.preparation.duplicates import Flags, decide, find_overlap
from dragoman.preparation.encoding import ShardFigures, encode_shard, repeats_of
from dragoman.preparation.learning import learn_pieces
from dragoman.preparation.plan import HELD_OUT, Plan, make_plan
from dragoman.preparation.processes import Advance, in_parallel
from dragoman.preparation.slices import Share, count_slices, slices
from dragoman.preparation.stage import as_text
from dragoman.preparation.summary import passport_of
from dragoman.preparation.test_parts import with_named_sets
from dragoman.rundir import write_whole
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.tokenizer import Tokenizer, WordCache

logger = logging.getLogger(__name__)

# Below this much text, starting processes costs more than they save.
BYTES_WORTH_A_PROCESS = 20_000_000


def prepare(config: Config) -> PreparedData:
    """Prepares the data of a recipe, or returns it if it is already prepared."""
    plan = make_plan(config)
    if current := _current(plan):
        return with_named_sets(plan, current)
    cores = _cores(plan)
    with storage_errors(plan.folder, "preparing data"):
        total = expected_pairs(config.data)
        in_parallel(clean_share, config, cores, "cleaning", total, is_about=True)
        return _join(plan, cores)


def join(config: Config) -> PreparedData:
    """Finishes the preparation after all shares are clean, here or on other machines."""
    plan = make_plan(config)
    missing = [n for n in range(count_slices(config.data)) if not plan.clean.is_done(n)]
    if missing:
        raise RunError(
            f"{plan.clean.folder}: {len(missing)} slices are not clean yet, the first of them is "
            f"number {missing[0]}; let every --part finish, then run --join again"
        )
    with storage_errors(plan.folder, "preparing data"):
        return _join(plan, _cores(plan))


def clean_share(config: Config, share: Share, advance: Advance) -> None:
    """Cleans the slices of a share that are not clean yet. Independent of all other shares."""
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
            contents=as_text(cleaned.pairs)
            | {"keys": keys(cleaned.pairs, config.cleaning).tobytes()},
        )
        advance(len(part.pairs))


def encode_share(config: Config, share: Share, advance: Advance) -> None:
    """Encodes the kept pairs of a share's slices that are not encoded yet."""
    plan = make_plan(config)
    tokenizer = Tokenizer.load(plan.tokenizer_file)
    words = WordCache(tokenizer)
    for number in plan.clean.numbers():
        if not share.has(number) or plan.shards.is_done(number):
            continue
        kept = plan.kept.flags(number)
        of_slice = plan.clean.keys(number)
        figures = encode_shard(
            [pair for pair, stays in zip(plan.clean.pairs(number), kept, strict=True) if stays],
            repeats_of(of_slice[kept], _weight(plan, number, kept)),
            tokenizer,
            words,
            config.data.max_length,
            plan.shards.folder,
            stem=f"train-{number:05d}",
        )
        plan.shards.finish(number, figures.to_json(), {})
        advance(len(of_slice))


def _weight(plan: Plan, number: int, kept: Flags) -> float | npt.NDArray[np.float64]:
    """Returns the weight of a slice's kept pairs, or one for each."""
    if plan.has_larger_weights:
        return plan.overlap.weights(number)[kept]
    source: int = plan.clean.record(number)["source"]
    return plan.config.data.train[source].weight


def dropped_examples(config: Config) -> dict[str, list[Pair]]:
    """Returns some dropped pairs for each reason, as they were read."""
    plan = make_plan(config)
    examples: dict[str, list[Pair]] = {}
    for stage in (plan.clean, plan.kept, plan.shards):
        for number in stage.numbers():
            for reason, pairs in stage.record(number)["examples"].items():
                shown = examples.setdefault(reason, [])
                shown += [Pair(*pair) for pair in pairs[: EXAMPLES_KEPT - len(shown)]]
    return examples


def _current(plan: Plan) -> PreparedData | None:
    if not (plan.folder / PASSPORT_NAME).exists():
        return None
    prepared = PreparedData.open(plan.folder)
    return prepared if prepared.passport.key == plan.shards.folder.name else None


def _cores(plan: Plan) -> int:
    phrases = sum(s.pairs for s in plan.config.data.train if isinstance(s, PhrasebookSource))
    size = sum(file.bytes for file in plan.inputs) + 100 * phrases
    return max(1, min(os.cpu_count() or 1, size // BYTES_WORTH_A_PROCESS))


def _join(plan: Plan, cores: int) -> PreparedData:
    """Runs the stages that need the whole corpus, and returns the prepared data."""
    config = plan.config
    _write_held_out(plan)
    total = _decide(plan)
    if not total:
        raise UserError("no training pair is left after cleaning; check the files of data.train")
    _compare_sources(plan)
    _learn(plan, total)
    in_parallel(encode_share, config, cores, "encoding", total)
    tokenizer = Tokenizer.load(plan.tokenizer_file)
    passport = passport_of(plan, tokenizer, _encode_held_out(plan, tokenizer))
    for split in ("train", "validation"):
        record = passport.splits[split]
        if not record.pairs_kept:
            raise UserError(
                f"no {split} pair is left after cleaning: {record.dropped}; "
                f"check the files of data.{split} and data.max_length"
            )
    if not passport.splits["train"].pairs_per_epoch:
        weights = ", ".join(f"{source.weight:g}" for source in config.data.train)
        raise UserError(
            f"the weights of data.train ({weights}) leave none of its "
            f"{passport.splits['train'].pairs_kept:,} pairs in an epoch; raise them"
        )
    write_whole(plan.folder / PASSPORT_NAME, passport.model_dump_json(indent=2) + "\n")
    _sweep(plan)
    return PreparedData(plan.folder, passport)


def _write_held_out(plan: Plan) -> None:
    """Writes every line of validation and test, since a score is valid only for a whole set."""
    for number, split in enumerate(HELD_OUT):
        if plan.held_out.is_done(number) or not sources_of(plan.config.data, split):
            continue
        data = plan.config.data
        read = [list(read_source(source, data, split)) for source in sources_of(data, split)]
        pairs = list(chain.from_iterable(read))
        record = {
            "split": split,
            "pairs": len(pairs),
            "pairs_of_sources": [len(of_source) for of_source in read],
        }
        plan.held_out.finish(number, record, as_text(pairs))


def _decide(plan: Plan) -> int:
    """Marks duplicates and leaks; returns the number of clean pairs before."""
    numbers = plan.clean.numbers()
    cleaning = plan.config.cleaning
    if not all(map(plan.kept.is_done, numbers)):
        held_out = [pair for n in plan.held_out.numbers() for pair in plan.held_out.pairs(n)]
        normal = [normalized(pair, cleaning) for pair in held_out] if cleaning.drop_leaks else []
        with waiting("finding duplicates"):
            decision = decide(
                [plan.clean.keys(number) for number in numbers],
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


def _compare_sources(plan: Plan) -> None:
    """Finds out which pairs occur in several sources: the first stays, with the largest weight."""
    numbers = plan.clean.numbers()
    if not plan.has_overlap or all(map(plan.overlap.is_done, numbers)):
        return
    with waiting("comparing sources"):
        overlap = find_overlap(
            [plan.clean.keys(number) for number in numbers],
            [plan.kept.flags(number) for number in numbers],
            [plan.clean.record(number)["source"] for number in numbers],
            [source.weight for source in plan.config.data.train],
        )
    for number, weights, duplicates_of in zip(numbers, *overlap, strict=True):
        contents = {"weights": weights.tobytes()} if plan.has_larger_weights else {}
        plan.overlap.finish(number, {"duplicates_of": duplicates_of}, contents)


def _examples(plan: Plan, number: int, duplicate: Flags, leak: Flags) -> dict[str, list[Pair]]:
    wanted = {
        "duplicate": set(np.flatnonzero(duplicate)[:EXAMPLES_KEPT].tolist()),
        "in validation or test": set(np.flatnonzero(leak)[:EXAMPLES_KEPT].tolist()),
    }
    if not any(wanted.values()):
        return {}
    pairs = plan.clean.pairs(number)
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
        logger.info(f"learning {settings.vocabulary:,} subword pieces")
        every = max(1, -(-2 * total // settings.sample_lines))
        tokenizer = learn_pieces(_sample(plan, every), 2 * total // every, settings)
    write_whole(plan.tokenizer_file, tokenizer.model)


def _sample(plan: Plan, every: int) -> Iterator[str]:
    """Yields both sides of every n-th kept pair."""
    seen = 0
    for number in plan.clean.numbers():
        kept = plan.kept.flags(number)
        for pair, stays in zip(plan.clean.pairs(number), kept, strict=True):
            if stays:
                if seen % every == 0:
                    yield from pair
                seen += 1


def _encode_held_out(plan: Plan, tokenizer: Tokenizer) -> dict[Split, ShardFigures]:
    """Writes the shards of validation and test, which are small; returns what is in them."""
    return {
        split: encode_shard(
            plan.held_out.pairs(number),
            None,
            tokenizer,
            WordCache(tokenizer),
            plan.config.data.max_length,
            plan.shards.folder,
            stem=split,
        )
        for number, split in enumerate(HELD_OUT)
        if sources_of(plan.config.data, split)
    }


def _sweep(plan: Plan) -> None:
    """Removes the folders of outdated stages, and partial files of killed processes."""
    counting = {stage.folder for stage in plan.stages}
    for path in plan.folder.iterdir():
        if path.is_dir() and path not in counting:
            shutil.rmtree(path, ignore_errors=True)
    for half in plan.folder.rglob(".*"):
        half.unlink(missing_ok=True)
