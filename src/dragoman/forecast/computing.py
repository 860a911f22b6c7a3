"""A step's computing from operations and speeds, where nobody has measured it. Pure.

Matrix products are counted exactly (`model/size.py`); how fast a device does them, and what share
of its speed training reaches, is given by the caller, who says where it comes from.
"""

from typing import NamedTuple

from dragoman.batches.amounts import Amounts
from dragoman.config import Config, ModelSettings
from dragoman.forecast.processing import Processor
from dragoman.forecast.step import Work
from dragoman.model.size import FP32_BYTES, size_of, training_flops

UPDATE_PASSES = 9
"""Reads or writes of all parameters by the norm of the gradients and by AdamW."""
NEWTON_SCHULZ_STEPS = 5
"""Of Muon: each is three products of a matrix."""
PADDED = 1.1
"""Padded tokens of a side of a micro-batch for each of its target tokens: the longer side counts,
which is 8 % longer where lengths vary as in news, and padding is 2 to 5 % (docs/design.md)."""
USUAL_LENGTH = 30.0
"""Tokens of a side of a pair of newspapers and parliaments, where no data is prepared yet."""


class Lengths(NamedTuple):
    """Of a mean training pair, in pieces."""

    source: float
    target: float
    source_squared: float
    """The mean of the square, which attention scales with."""
    target_squared: float
    source_times_target: float

    def amounts(self, target_tokens: float) -> Amounts:
        """Returns the work of pairs with so many target tokens in all."""
        pairs = target_tokens / self.target
        return Amounts(
            sequences=round(pairs),
            source_tokens=round(pairs * self.source),
            target_tokens=round(target_tokens),
            positions=round(pairs * (self.source + self.target)),
            source_squared=round(pairs * self.source_squared),
            target_squared=round(pairs * self.target_squared),
            source_times_target=round(pairs * self.source_times_target),
        )


def usual_lengths(length: float = USUAL_LENGTH) -> Lengths:
    """Returns pairs that are all of the same length."""
    return Lengths(length, length, length**2, length**2, length**2)


class Operations(NamedTuple):
    """Multiplications and additions of one update of all workers."""

    forward: float
    """With the loss, whose gradient is computed there, too (`model/loss.py`)."""
    backward: float
    update: float
    """Of every worker, whatever their number: products of Muon."""


def operations_of(config: Config, vocabulary: int, lengths: Lengths) -> Operations:
    training, model = config.training, config.model
    amounts = lengths.amounts(training.tokens_per_update)
    whole = training.passes * training_flops(model, vocabulary, amounts)
    projected = training.passes * 6.0 * model.width * vocabulary * amounts.target_tokens
    layers = whole - projected
    return Operations(
        forward=layers / 3 + projected,
        backward=2 * layers / 3,
        update=muon_operations(model) if config.optimizer.kind == "muon" else 0.0,
    )


def muon_operations(model: ModelSettings) -> float:
    """Returns the operations that make the momentum of all hidden matrices orthogonal.

    A step of a matrix of m x n, m the smaller: two products of 2 m^2 n and one of 2 m^3.
    """

    def of_matrix(rows: int, columns: int) -> float:
        small, large = sorted((rows, columns))
        return NEWTON_SCHULZ_STEPS * (4.0 * small**2 * large + 2.0 * small**3)

    width = model.width
    attention = of_matrix(3 * width, width) + of_matrix(width, width)
    looking_up = of_matrix(2 * width, width) + 2 * of_matrix(width, width)
    feed_forward = 2 * of_matrix(width, model.filter)
    encoder = model.encoder_layers * (attention + feed_forward)
    return encoder + model.decoder_layers * (attention + looking_up + feed_forward)


def work_of(
    config: Config,
    vocabulary: int,
    operations: Operations,
    passes: int,
    micro_batches: int,
    flops_per_s: float,
    processor: Processor,
) -> Work:
    """Returns the computing of a worker that has `passes` of all micro-batches of an update.

    `flops_per_s` is what training reaches, not what the device promises.
    """
    share = passes / micro_batches
    size = size_of(config.model, vocabulary, config.optimizer)
    moved_bytes = UPDATE_PASSES * FP32_BYTES * size.parameters + 3 * size.average_bytes
    backward_s = share * operations.backward / flops_per_s
    return Work(
        forward_s=share * operations.forward / flops_per_s,
        backward_s=backward_s,
        last_backward_s=backward_s / passes,
        update_s=moved_bytes / (2 * processor.copy) + operations.update / flops_per_s,
    )


def micro_batches_of(config: Config, ranks: int) -> int:
    """Returns the micro-batches of an update: a power of two, and one for each rank at least.

    An estimate for usual sentences: training counts them in its data. Where ranks are more than the
    recipe's own micro-batches, smaller ones are taken to be set.
    """
    count = 1
    tokens = PADDED * config.training.tokens_per_update
    while count * config.training.pairs_fill_tokens < tokens or count < ranks:
        count *= 2
    return count


def passes_of(micro_batches: int, ranks: int) -> int:
    """Returns the micro-batches of the rank that has the most of them."""
    return -(-micro_batches // ranks)
