"""What a plan knows of the training data: its lengths and steps, prepared or guessed."""

import logging
from dataclasses import dataclass

import numpy as np

from dragoman.batches.plan import BatchPlan
from dragoman.config import Config
from dragoman.errors import DragomanError
from dragoman.forecast.computing import Lengths, micro_batches_of, usual_lengths
from dragoman.shards.passport import PASSPORT_NAME, PreparedData

logger = logging.getLogger(__name__)

USUAL_VALIDATION_PAIRS = 3000
MOST_MEASURED = 1_000_000
"""Pairs whose lengths are looked at; the mean of more is the same."""


@dataclass(frozen=True)
class Data:
    vocabulary: int
    lengths: Lengths
    micro_batches: int
    """Of an update."""
    steps_per_epoch: int | None
    validation_pairs: int
    is_prepared: bool
    basis: str


def data_of(config: Config, ranks: int) -> Data:
    """Reads the prepared data if it is there; otherwise the usual is assumed."""
    folder = config.prepared_folder
    if (folder / PASSPORT_NAME).exists():
        try:
            return _prepared(config, PreparedData.open(folder))
        except DragomanError as error:
            logger.warning(f"{error}; the plan assumes usual lengths instead")
    return Data(
        vocabulary=config.tokenizer.vocabulary,
        lengths=usual_lengths(),
        micro_batches=micro_batches_of(config, 1),
        steps_per_epoch=None,
        validation_pairs=USUAL_VALIDATION_PAIRS,
        is_prepared=False,
        basis="assumed: pairs of 30 tokens a side, since no data is prepared",
    )


def _prepared(config: Config, prepared: PreparedData) -> Data:
    passport = prepared.passport
    every = prepared.shards("train").lengths()
    plan = BatchPlan(
        every,
        config.training.tokens_per_update,
        config.training.pairs_fill_tokens,
        config.training.seed,
    )
    sample = every[:MOST_MEASURED].astype(np.float64)
    source, target = sample[:, 0], sample[:, 1]
    return Data(
        vocabulary=passport.vocabulary,
        lengths=Lengths(
            source=float(source.mean()),
            target=float(target.mean()),
            source_squared=float((source**2).mean()),
            target_squared=float((target**2).mean()),
            source_times_target=float((source * target).mean()),
        ),
        micro_batches=plan.micro_batches_per_step,
        steps_per_epoch=plan.steps_per_epoch,
        validation_pairs=passport.splits["validation"].pairs_kept,
        is_prepared=True,
        basis=f"{len(every):,} prepared pairs",
    )
