"""What a plan knows of the training data: its lengths and steps, prepared or guessed."""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.batches.plan import BatchPlan
from dragoman.config import Config, PhrasebookSource
from dragoman.errors import DragomanError
from dragoman.forecast.computing import Lengths, micro_batches_of, usual_lengths
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.tokenizer import Tokenizer, missing_model
from dragoman.training.batch_plan import plan_prepared

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
    batches: BatchPlan | None = None
    """Of the prepared data, as training cuts them."""
    files: frozenset[str] = frozenset()
    """Those that the prepared data was made from."""


def given_pieces(config: Config) -> int | None:
    """Returns the pieces of the model in `tokenizer.model`; None: pieces are to be learned."""
    if not config.tokenizer.model:
        return None
    path = Path(config.tokenizer.model)
    if not path.exists():
        raise missing_model(path)
    return Tokenizer.load(path).size


def data_of(config: Config, ranks: int) -> Data:
    """Reads the prepared data if it is there; otherwise the usual is assumed."""
    folder = config.prepared_folder
    if (folder / PASSPORT_NAME).exists():
        try:
            return _prepared(config, PreparedData.open(folder))
        except DragomanError as error:
            logger.warning(f"{error}; the plan assumes usual lengths instead")
    return unprepared(config, _pieces(config))


def unprepared(config: Config, vocabulary: int) -> Data:
    """Returns what is usual, for data that nobody has counted yet."""
    return Data(
        vocabulary=vocabulary,
        lengths=usual_lengths(),
        micro_batches=micro_batches_of(config, 1),
        steps_per_epoch=None,
        validation_pairs=_validation_pairs(config),
        is_prepared=False,
        basis="assumed: pairs of 30 tokens a side, since no data is prepared",
    )


def _validation_pairs(config: Config) -> int:
    """Returns how many there are, if the recipe says so; else what is usual."""
    sources = config.data.validation
    made = [source.pairs for source in sources if isinstance(source, PhrasebookSource)]
    return sum(made) if len(made) == len(sources) else USUAL_VALIDATION_PAIRS


def _pieces(config: Config) -> int:
    try:
        return given_pieces(config) or config.tokenizer.vocabulary
    except DragomanError as error:
        logger.warning(f"{error}; the plan assumes tokenizer.vocabulary pieces")
        return config.tokenizer.vocabulary


def _prepared(config: Config, prepared: PreparedData) -> Data:
    passport = prepared.passport
    shards = prepared.shards("train")
    every = shards.lengths()
    plan = plan_prepared(prepared, config, 1)
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
        batches=plan,
        files=frozenset(file.path for file in passport.inputs),
    )
