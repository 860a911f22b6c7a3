"""What a whole run takes and costs, given one step. Pure."""

from typing import NamedTuple

from dragoman.config import Config
from dragoman.forecast.computing import Lengths
from dragoman.forecast.processing import Processor
from dragoman.model.size import Size, training_flops

SAVED_BYTES_PER_S = 4e8
"""Of a checkpoint: copied, hashed and written by cores that compute otherwise. On a GPU host these
are others."""
DECODING_TIMES = 6.0
"""Translating computes a position at a time, which uses a device so many times worse than
training's forward does."""
START_S = 20.0
"""Processes, connections, the plan of batches and the first weights."""


class Extra(NamedTuple):
    """Seconds of a run that are not its steps."""

    evaluations: int
    evaluation_s: float
    """Of one, in which training stands still; all workers share it."""
    saves: int
    save_s: float
    """By which one makes training slower; it is written in the background."""
    start_s: float = START_S

    @property
    def seconds(self) -> float:
        return self.start_s + self.evaluations * self.evaluation_s + self.saves * self.save_s


def extra_of(
    config: Config,
    size: Size,
    steps: int,
    step_s: float,
    evaluation_s: float,
    processor: Processor,
) -> Extra:
    saving, every = config.checkpoints, config.evaluation.every_steps
    evaluations = -(-steps // every)
    run_s = steps * step_s
    # Without a fixed interval, no later than `lost_minutes` allow.
    by_clock = run_s / (60 * saving.lost_minutes)
    regular = steps / saving.every_steps if saving.every_steps else by_clock
    uses_cores = processor.communication_s_per_byte > 0
    return Extra(
        evaluations=evaluations,
        evaluation_s=evaluation_s,
        saves=round(regular) + evaluations,
        save_s=size.checkpoint_bytes / SAVED_BYTES_PER_S if uses_cores else 0.0,
    )


def evaluation_s(
    config: Config,
    vocabulary: int,
    validation_pairs: int,
    lengths: Lengths,
    ranks: int,
    flops_per_s: float,
) -> float:
    """Returns the seconds of one evaluation: losses of all held-out pairs, and translations, unless
    these are made beside training."""
    sentences = min(config.evaluation.translate_sentences or validation_pairs, validation_pairs)
    pairs = validation_pairs + config.evaluation.train_sample_pairs
    forward = training_flops(config.model, vocabulary, lengths.amounts(lengths.target)) / 3
    beam = 0 if config.evaluation.beside else config.evaluation.beam
    work = pairs + sentences * DECODING_TIMES * beam
    return work * forward / flops_per_s / ranks
