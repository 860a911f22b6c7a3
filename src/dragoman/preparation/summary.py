"""The passport of a plan whose stages are done: their records come in, added up they go out.

It reads files of the stages and writes none.
"""

import hashlib
import platform
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import sentencepiece

from dragoman import __version__
from dragoman.corpus.sources import Split, describe
from dragoman.preparation.encoding import ShardFigures, SideFigures
from dragoman.preparation.plan import HELD_OUT, Plan
from dragoman.preparation.test_parts import pairs_of_sources, parts_of
from dragoman.rundir import sha256_of
from dragoman.shards.passport import Passport, Side, SourceRecord, SplitRecord
from dragoman.tokenizer import Tokenizer


def passport_of(
    plan: Plan, tokenizer: Tokenizer, held_out: Mapping[Split, ShardFigures]
) -> Passport:
    """Returns the passport; `held_out` has the figures of validation and test."""
    data = plan.config.data
    train = ShardFigures()
    for number in plan.clean.numbers():
        train.add(ShardFigures.from_json(plan.shards.record(number)))
    splits = {"train": _train_record(plan, train)}
    for split, figures in held_out.items():
        splits[split] = _held_out_record(plan, split, figures)
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
    duplicates_of = [np.zeros(len(sources), dtype=np.int64) for _ in sources]
    bytes_of = Counter[str]()
    for number in plan.clean.numbers():
        record, kept, shard = (s.record(number) for s in (plan.clean, plan.kept, plan.shards))
        source = record["source"]
        for drops in (record["dropped"], kept["dropped"], shard["dropped"]):
            dropped[source].update(drops)
        sources[source]["in"] += record["pairs_in"]
        if plan.has_overlap:
            duplicates_of[source] += plan.overlap.record(number)["duplicates_of"]
        for side in ("source", "target"):
            bytes_of[side] += plan.clean.file(number, side).stat().st_size
    records = [
        SourceRecord(
            description=describe(source),
            weight=source.weight,
            pairs_in=counts["in"],
            pairs_kept=counts["in"] - sum(drops.values()),
            dropped=dict(drops),
            duplicates_of=duplicates.tolist() if plan.has_overlap else [],
        )
        for source, counts, drops, duplicates in zip(
            plan.config.data.train, sources, dropped, duplicates_of, strict=True
        )
    ]
    return SplitRecord(
        pairs_in=sum(record.pairs_in for record in records),
        pairs_kept=sum(record.pairs_kept for record in records),
        pairs_per_epoch=figures.pairs,
        dropped=dict(sum(dropped, Counter[str]())),
        sources=records,
        source=_side("", "", bytes_of["source"], figures.source),
        target=_side("", "", bytes_of["target"], figures.target),
        shards=figures.files,
    )


def _held_out_record(plan: Plan, split: Split, figures: ShardFigures) -> SplitRecord:
    number = HELD_OUT.index(split)
    files = [plan.held_out.file(number, side) for side in ("source", "target")]
    return SplitRecord(
        pairs_in=plan.held_out.record(number)["pairs"],
        pairs_kept=figures.pairs,
        pairs_per_epoch=figures.pairs,
        dropped=figures.dropped,
        sources=[],
        source=_side_of_file(plan, files[0], figures.source),
        target=_side_of_file(plan, files[1], figures.target),
        shards=figures.files,
        parts=parts_of(plan, pairs_of_sources(plan)) if split == "test" else [],
    )


def _side_of_file(plan: Plan, file: Path, figures: SideFigures) -> Side:
    name = str(file.relative_to(plan.folder))
    return _side(name, sha256_of(file), file.stat().st_size, figures)


def _side(file: str, sha256: str, size: int, figures: SideFigures) -> Side:
    return Side(
        file=file,
        sha256=sha256,
        bytes=size,
        tokens=figures.tokens,
        unknown_tokens=figures.unknown_tokens,
        lengths=figures.lengths.tolist(),
    )
