"""Writes prepared data of any size, or in other pieces, from the real pairs of a prepared corpus.

Pairs are drawn whole and with replacement, so that lengths, ids and their joint distribution are
the real ones; files are as large as those of a corpus of distinct pairs, in shards of as many.
Neither the batch plan nor the loader compares pairs with each other, so repetition saves them
nothing.
"""

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from dragoman.batches.subword_dropout import SubwordDropout
from dragoman.preparation.slices import PAIRS_PER_SLICE
from dragoman.rundir import write_whole
from dragoman.shards.files import PairIds, Shards, write_shard
from dragoman.shards.passport import PASSPORT_NAME, PreparedData


def write_corpus(prepared: PreparedData, folder: Path, pairs: Iterable[list[PairIds]]) -> None:
    """Writes a prepared folder with these training pairs, one list a shard, and all else as it is.

    The passport keeps its key, so a recipe takes the folder for the data that it would prepare.
    """
    record = prepared.passport.splits["train"]
    replaced = {file.name for file in record.shards}
    for name in prepared.files():
        if name not in replaced:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(prepared.folder / name, folder / name)
    (folder / "train").mkdir()
    files, count = [], 0
    dtype = np.asarray(prepared.shards("train")[0].source).dtype
    for number, of_shard in enumerate(pairs):
        sides = [side for pair in of_shard for side in pair]
        tokens = np.concatenate(sides).astype(dtype)
        bounds = np.cumsum([0, *map(len, sides)], dtype=np.int64)
        files += write_shard(folder / "train", f"train-{number:05d}", tokens, bounds)
        count += len(of_shard)
    changed = record.model_copy(
        update={"shards": files, "pairs_kept": count, "pairs_per_epoch": count}
    )
    splits = prepared.passport.splits | {"train": changed}
    passport = prepared.passport.model_copy(update={"splits": splits})
    write_whole(folder / PASSPORT_NAME, passport.model_dump_json(indent=2) + "\n")


def drawn_pairs(shards: Shards, count: int, seed: int) -> Iterator[list[PairIds]]:
    """Draws pairs with replacement, in lists of as many as a shard has."""
    real = [shards[number] for number in range(len(shards))]
    chance = np.random.default_rng(seed)
    for begin in range(0, count, PAIRS_PER_SLICE):
        numbers = chance.integers(len(real), size=min(PAIRS_PER_SLICE, count - begin))
        yield [real[number] for number in numbers.tolist()]


def resegmented_pairs(shards: Shards, dropout: SubwordDropout) -> Iterator[list[PairIds]]:
    """Returns all pairs in other pieces, drawn once."""
    for begin in range(0, len(shards), PAIRS_PER_SLICE):
        end = min(len(shards), begin + PAIRS_PER_SLICE)
        pairs = [shards[number] for number in range(begin, end)]
        sources, targets = (
            dropout.resegment([pair[side] for pair in pairs], sys.maxsize, 0, begin, name)
            for side, name in enumerate(("source", "target"))
        )
        yield [*map(PairIds, sources, targets)]
