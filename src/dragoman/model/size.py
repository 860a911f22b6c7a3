"""How big a model is: parameters, floating-point operations, memory. Pure, without torch."""

from typing import NamedTuple

from dragoman.config import ModelSettings

FP32_BYTES = 4


class Size(NamedTuple):
    parameters: int
    flops_per_token: int
    """Forward and backward, for one source and one target token of an average pair."""
    weight_bytes: int
    gradient_bytes: int
    optimizer_bytes: int

    @property
    def state_bytes(self) -> int:
        """What a device holds before the first activation."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes


def size_of(model: ModelSettings, vocabulary: int, mean_length: int = 30) -> Size:
    parameters = count_parameters(model, vocabulary)
    return Size(
        parameters=parameters,
        flops_per_token=training_flops_per_token(model, vocabulary, mean_length),
        weight_bytes=FP32_BYTES * parameters,
        gradient_bytes=FP32_BYTES * parameters,
        optimizer_bytes=2 * FP32_BYTES * parameters,  # Adam's mean and square
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


def training_flops_per_token(model: ModelSettings, vocabulary: int, mean_length: int) -> int:
    """Multiplications and additions of all matrix products, attention's included.

    One source token passes the encoder and the decoder's look-up of it, one target token the
    decoder and the output projection. Backward computes two products for each of forward's.
    """
    products = 2 * model.width * model.filter
    # Scores and weighted sum over mean_length positions; a causal mask is not credited.
    attending = 2 * model.width * mean_length
    source_token = model.encoder_layers * (4 * model.width**2 + attending + products)
    source_token += model.decoder_layers * 2 * model.width**2
    target_token = model.decoder_layers * (6 * model.width**2 + 2 * attending + products)
    target_token += model.width * vocabulary
    forward = 2 * (source_token + target_token)
    return 3 * forward


def activation_bytes(model: ModelSettings, micro_batch_tokens: int) -> int:
    """A rough bound for fp32 activations kept between forward and backward of a micro-batch."""
    per_encoder_token = model.encoder_layers * (14 * model.width + 3 * model.filter)
    per_decoder_token = model.decoder_layers * (22 * model.width + 3 * model.filter)
    return FP32_BYTES * micro_batch_tokens * (per_encoder_token + per_decoder_token)
