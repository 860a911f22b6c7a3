"""The size of a model: parameters, floating-point operations, memory. Pure, without torch."""

from typing import NamedTuple

from dragoman.batches.amounts import Amounts
from dragoman.config import ModelSettings, OptimizerSettings, SyncSettings

FP32_BYTES = 4


class Size(NamedTuple):
    parameters: int
    flops_per_token: int
    """Forward and backward, for one source and one target token of an average pair."""
    weight_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    average_bytes: int
    """Of a second set of weights, where an average translates and not the weights that train."""
    outer_bytes: int = 0
    """Where workers take steps of their own: of the common weights, of the outer momentum, and of
    fragments on their way as they departed, as they differ, and as their mean."""
    outer_saved_bytes: int = 0
    """What of that a checkpoint has, and the worker's own weights."""

    @property
    def state_bytes(self) -> int:
        """Returns the bytes that a device holds before the first activation."""
        training = self.weight_bytes + self.gradient_bytes + self.optimizer_bytes
        return training + self.average_bytes + self.outer_bytes

    @property
    def checkpoint_bytes(self) -> int:
        """Returns the bytes of a checkpoint's tensors, which are almost all of it.

        Where workers take steps of their own, of a host with one worker: each more adds its
        optimizer's.
        """
        translating = self.weight_bytes + self.average_bytes
        return translating + self.optimizer_bytes + self.outer_saved_bytes


def size_of(
    model: ModelSettings,
    vocabulary: int,
    optimizer: OptimizerSettings | None = None,
    sync: SyncSettings | None = None,
    mean_length: int = 30,
) -> Size:
    """Without an `optimizer`, the size is that of a model which AdamW trains."""
    optimizer = optimizer or OptimizerSettings()
    parameters = count_parameters(model, vocabulary)
    # Adam's mean and square, Schedule-Free's square and z; of Muon's matrices, a mean alone.
    states = 2 * parameters
    if optimizer.kind == "muon":
        states -= count_hidden_matrices(model)
    sync = sync or SyncSettings()
    if sync.mode == "auto":  # of what it may choose, the largest
        sync = SyncSettings(mode="local")
    is_local, saved = sync.is_local, (sync.delay or 0) / sync.window_steps
    on_the_way = max(saved, 1 / (sync.fragments or 1))
    return Size(
        parameters=parameters,
        flops_per_token=training_flops_per_token(model, vocabulary, mean_length),
        weight_bytes=FP32_BYTES * parameters,
        gradient_bytes=FP32_BYTES * parameters,
        optimizer_bytes=FP32_BYTES * states,
        average_bytes=FP32_BYTES * parameters if optimizer.averages else 0,
        outer_bytes=int(FP32_BYTES * parameters * (2 + 3 * on_the_way)) if is_local else 0,
        outer_saved_bytes=int(FP32_BYTES * parameters * (2 + 2 * saved)) if is_local else 0,
    )


def count_parameters(model: ModelSettings, vocabulary: int) -> int:
    norm = 2 * model.width
    attention = 4 * model.width**2
    feed_forward = 2 * model.width * model.filter + model.filter + model.width + norm
    encoder_layer = attention + norm + feed_forward
    decoder_layer = 2 * (attention + norm) + feed_forward
    return (
        vocabulary * model.width
        + model.encoder_layers * encoder_layer
        + model.decoder_layers * decoder_layer
        + 2 * norm
    )


def count_hidden_matrices(model: ModelSettings) -> int:
    """Returns the parameters of the layers' matrices: without embeddings, norms and biases."""
    feed_forward = 2 * model.width * model.filter
    encoder_layer = 4 * model.width**2 + feed_forward
    decoder_layer = 8 * model.width**2 + feed_forward
    return model.encoder_layers * encoder_layer + model.decoder_layers * decoder_layer


def training_flops_per_token(model: ModelSettings, vocabulary: int, mean_length: int) -> int:
    """Returns the operations for one source and one target token of a pair of that length."""
    square = mean_length**2
    pair = Amounts(1, mean_length, mean_length, 2 * mean_length, square, square, square)
    return training_flops(model, vocabulary, pair) // mean_length


def training_flops(model: ModelSettings, vocabulary: int, amounts: Amounts) -> int:
    """Returns the multiplications and additions of all matrix products, including attention.

    Counts what the model needs for its tokens: padding is not credited. A source token passes the
    encoder and the decoder's look-up of it, a target token the decoder and the output projection.
    Backward computes two products for each of forward's.
    """
    encoder, decoder = model.encoder_layers, model.decoder_layers
    square, filters = model.width**2, 2 * model.width * model.filter
    source_token = encoder * (4 * square + filters) + decoder * 2 * square
    target_token = decoder * (6 * square + filters) + model.width * vocabulary
    # Scores and weighted sums over all positions; a causal mask is not credited.
    attended = encoder * amounts.source_squared
    attended += decoder * (amounts.target_squared + amounts.source_times_target)
    forward = 2 * (
        source_token * amounts.source_tokens
        + target_token * amounts.target_tokens
        + 2 * model.width * attended
    )
    return 3 * forward


def activation_bytes(model: ModelSettings, micro_batch_tokens: int) -> int:
    """Returns a rough bound for the fp32 activations of a micro-batch kept for backward."""
    per_encoder_token = model.encoder_layers * (14 * model.width + 3 * model.filter)
    per_decoder_token = model.decoder_layers * (22 * model.width + 3 * model.filter)
    return FP32_BYTES * micro_batch_tokens * (per_encoder_token + per_decoder_token)
