"""Runs the stages in order: clean, decide, learn the pieces, encode, write the passport."""

import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from pathlib import Path

from dragoman.config import Config, PhrasebookSource
from dragoman.cores import allowed_cores
from dragoman.corpus.cleaning import EXAMPLES_KEPT
from dragoman.corpus.pair import Pair
from dragoman.corpus.sources import Split, read_source, sources_of
from dragoman.errors import RunError, UserError, storage_errors
from dragoman.preparation.cleaned import clean_tasks
from dragoman.preparation.corpus_size import expected_pairs
from dragoman.preparation.encoding import (
    ShardFigures,
    encode_shard,
    encode_tasks,
    forget_words,
)
from dragoman.preparation.kept import mark_kept
from dragoman.preparation.learning import learn_pieces
from dragoman.preparation.plan import HELD_OUT, Plan, make_plan
from dragoman.preparation.sample import sampled_texts
from dragoman.preparation.slices import Share, count_slices
from dragoman.preparation.stage import as_text
from dragoman.preparation.summary import passport_of
from dragoman.preparation.test_parts import with_named_sets
from dragoman.preparation.workers import LocalWorkers, Workers, run_tasks
from dragoman.rundir import write_whole
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.tokenizer import Tokenizer, WordCache

logger = logging.getLogger(__name__)

# Below this much text, starting processes costs more than they save.
BYTES_WORTH_A_PROCESS = 20_000_000

StartWorkers = Callable[[Plan], AbstractContextManager[Workers]]


def local_workers(plan: Plan) -> LocalWorkers:
    return LocalWorkers(_cores(plan))


def prepare(config: Config, start_workers: StartWorkers = local_workers) -> PreparedData:
    """Prepares the data of a recipe, or returns it if it is already prepared."""
    plan = make_plan(config)
    if current := _current(plan):
        return with_named_sets(plan, current)
    with storage_errors(plan.folder, "preparing data"), _locked(plan, fcntl.LOCK_EX):
        if current := _current(plan):  # another process has just done it
            return with_named_sets(plan, current)
        return _prepare(plan, start_workers)


def _prepare(plan: Plan, start_workers: StartWorkers) -> PreparedData:
    with start_workers(plan) as workers:
        total = expected_pairs(plan.config.data)
        run_tasks(workers, clean_tasks(plan), "cleaning", total, is_about=True)
        return _join(plan, workers)


def join(config: Config) -> PreparedData:
    """Finishes the preparation after all shares are clean, here or on other machines."""
    plan = make_plan(config)
    slices = count_slices(config.data, plan.index, plan.refuse_changed)
    missing = [number for number in range(slices) if not plan.clean.is_done(number)]
    if missing:
        raise RunError(
            f"{plan.clean.folder}: {len(missing)} slices are not clean yet, the first of them is "
            f"number {missing[0]}; let every --part finish, then run --join again"
        )
    with (
        storage_errors(plan.folder, "preparing data"),
        _locked(plan, fcntl.LOCK_EX),
        local_workers(plan) as workers,
    ):
        return _join(plan, workers)


def clean_share(config: Config, share: Share, advance: Callable[[int], None]) -> None:
    """Cleans the slices of a share that are not clean yet. Independent of all other shares."""
    plan = make_plan(config)
    with _locked(plan, fcntl.LOCK_SH):
        for pairs in LocalWorkers(1).do(clean_tasks(plan, share.has)):
            advance(pairs)


@contextmanager
def _locked(plan: Plan, kind: int) -> Iterator[None]:
    """While open, no other process of this machine sweeps what this one writes.

    The folder itself is locked, so nothing is left behind. File systems that cannot do so, as NFS,
    go without.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(plan.folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.info(f"waiting for another process that prepares data in {plan.folder}")
                fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


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
    return max(1, min(allowed_cores(), size // BYTES_WORTH_A_PROCESS))


def _join(plan: Plan, workers: Workers) -> PreparedData:
    """Runs the stages that need the whole corpus, and returns the prepared data."""
    config = plan.config
    _write_held_out(plan)
    total = mark_kept(plan, workers)
    if not total:
        raise UserError("no training pair is left after cleaning; check the files of data.train")
    _learn(plan, total, workers)
    run_tasks(workers, encode_tasks(plan), "encoding", total)
    forget_words()
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
        plan.refuse_changed()
        plan.held_out.finish(number, record, as_text(pairs))


def _learn(plan: Plan, total: int, workers: Workers) -> None:
    settings = plan.config.tokenizer
    if plan.tokenizer_file.exists():
        return
    if settings.model:
        tokenizer = Tokenizer.load(Path(settings.model))
        plan.refuse_changed()
    else:
        logger.info(f"learning {settings.vocabulary:,} subword pieces")
        every = max(1, -(-2 * total // settings.sample_lines))
        texts = sampled_texts(plan, every, total, workers)
        tokenizer = learn_pieces(texts, 2 * total // every, settings)
    write_whole(plan.tokenizer_file, tokenizer.model)


def _encode_held_out(plan: Plan, tokenizer: Tokenizer) -> dict[Split, ShardFigures]:
    """Writes the shards of validation and test, which are small; returns what is in them."""
    found: dict[Split, ShardFigures] = {}
    for number, split in enumerate(HELD_OUT):
        if not sources_of(plan.config.data, split):
            continue
        found[split], files = encode_shard(
            plan.held_out.pairs(number),
            None,
            WordCache(tokenizer),
            plan.config.data.max_length,
            plan.shards.folder.name,
            stem=split,
        )
        for name, content in files.items():
            write_whole(plan.shards.folder / name, content)
    return found


def _sweep(plan: Plan) -> None:
    """Removes the folders of outdated stages, and partial files of killed processes."""
    counting = {stage.folder for stage in plan.stages}
    for path in plan.folder.iterdir():
        if path.is_dir() and path not in counting:
            shutil.rmtree(path, ignore_errors=True)
    for half in plan.folder.rglob(".*"):
        half.unlink(missing_ok=True)
