"""The parameters of a model, in the order in which training meets them. Pure, without torch.

Backward makes gradients from the last layer to the first. DDP fills its buckets in that order, and
the one that holds the embedding, which is the output projection too, is ready when backward ends.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from dragoman.config import ModelSettings
from dragoman.distributed.fragments import cut
from dragoman.distributed.ring_bytes import BUCKET_MB

FP32_BYTES = 4
FIRST_BUCKET_BYTES = 2**20
"""Of DDP's first bucket, unless `sync.bucket_mb` is set: it is small, so that sending begins
early."""


class Tensor(NamedTuple):
    name: str
    elements: int


class Bucket(NamedTuple):
    elements: int
    ready_share: float
    """Of backward: when the last of its gradients is there."""
    tensors: int = 1


def weights_of(model: ModelSettings, vocabulary: int) -> list[Tensor]:
    """Returns all parameters in the order of the model, by which fragments are cut."""
    found = [Tensor("embedding.weight", vocabulary * model.width)]
    for number in range(model.encoder_layers):
        found += _encoder_layer(model, f"encoder.{number}.")
    found += _norm(model, "encoder_norm.")
    for number in range(model.decoder_layers):
        found += _decoder_layer(model, f"decoder.{number}.")
    return found + _norm(model, "decoder_norm.")


def gradients_of(model: ModelSettings, vocabulary: int) -> list[Tensor]:
    """Returns all parameters in the order in which backward has made their gradients.

    The source's keys and values of all decoder layers come together, when the decoder is done.
    """
    by_name = {tensor.name: tensor for tensor in weights_of(model, vocabulary)}
    names = _of_norm("decoder_norm.")
    for number in reversed(range(model.decoder_layers)):
        layer = f"decoder.{number}."
        names += [
            *_of_feed_forward(layer),
            *(f"{layer}cross_attention.{part}.weight" for part in ("output", "query")),
            *_of_norm(f"{layer}cross_norm."),
            *_of_self_attention(layer),
        ]
    names += [
        f"decoder.{number}.cross_attention.key_value.weight"
        for number in reversed(range(model.decoder_layers))
    ]
    names += _of_norm("encoder_norm.")
    for number in reversed(range(model.encoder_layers)):
        layer = f"encoder.{number}."
        names += [*_of_feed_forward(layer), *_of_self_attention(layer)]
    return [by_name[name] for name in (*names, "embedding.weight")]


def buckets_of(
    model: ModelSettings, vocabulary: int, bucket_mb: float | None = None
) -> list[Bucket]:
    """Returns DDP's buckets in the order in which they are sent.

    A bucket is closed by the gradient that fills it, so that it may be larger than its size.
    Backward is taken to spend its time in proportion to the elements of what it differentiates,
    the embedding excepted: looking up costs nothing, and the output projection's gradient is
    computed in forward (`model/loss.py`).
    """
    tensors = gradients_of(model, vocabulary)
    computed = max(1, sum(tensor.elements for tensor in tensors[:-1]))
    shares = accumulate(tensor.elements / computed for tensor in tensors[:-1])
    limits = _limits(bucket_mb)
    found: list[Bucket] = []
    elements = count = 0
    for tensor, share in zip(tensors, [*shares, 1.0], strict=True):
        elements, count = elements + tensor.elements, count + 1
        if elements * FP32_BYTES >= limits[min(len(found), len(limits) - 1)]:
            found.append(Bucket(elements, min(1.0, share), count))
            elements = count = 0
    return [*found, Bucket(elements, 1.0, count)] if elements else found


def fragments_of(model: ModelSettings, vocabulary: int, fragments: int) -> list[Bucket]:
    """Returns the fragments of `sync.mode` local and diloco; their share says nothing."""
    sizes = [tensor.elements for tensor in weights_of(model, vocabulary)]
    return [
        Bucket(sum(sizes[place] for place in members), 1.0, len(members))
        for members in cut(sizes, fragments)
    ]


def even_buckets(parameters: int, count: float) -> list[Bucket]:
    """Returns equal buckets that are ready at equal distances, where no layout is known."""
    whole = max(1, round(count))
    return [Bucket(parameters // whole, number / max(1, whole - 1)) for number in range(whole)]


def _limits(bucket_mb: float | None) -> Sequence[float]:
    if bucket_mb is not None:
        return [int(bucket_mb * 2**20)]
    return [FIRST_BUCKET_BYTES, BUCKET_MB * 2**20]


def _norm(model: ModelSettings, name: str) -> list[Tensor]:
    return [Tensor(each, model.width) for each in _of_norm(name)]


def _of_norm(name: str) -> list[str]:
    return [f"{name}weight", f"{name}bias"]


def _of_feed_forward(layer: str) -> list[str]:
    name = f"{layer}feed_forward."
    return [
        *(f"{name}outer.bias", f"{name}outer.weight", f"{name}inner.bias", f"{name}inner.weight"),
        *_of_norm(f"{name}norm."),
    ]


def _of_self_attention(layer: str) -> list[str]:
    name = f"{layer}self_attention."
    return [
        *(f"{name}output.weight", f"{name}query_key_value.weight"),
        *_of_norm(f"{layer}self_norm."),
    ]


def _encoder_layer(model: ModelSettings, layer: str) -> list[Tensor]:
    return [*_self_attention(model, layer), *_feed_forward(model, layer)]


def _decoder_layer(model: ModelSettings, layer: str) -> list[Tensor]:
    square = model.width**2
    return [
        *_self_attention(model, layer),
        *_norm(model, f"{layer}cross_norm."),
        Tensor(f"{layer}cross_attention.query.weight", square),
        Tensor(f"{layer}cross_attention.key_value.weight", 2 * square),
        Tensor(f"{layer}cross_attention.output.weight", square),
        *_feed_forward(model, layer),
    ]


def _self_attention(model: ModelSettings, layer: str) -> list[Tensor]:
    square = model.width**2
    return [
        *_norm(model, f"{layer}self_norm."),
        Tensor(f"{layer}self_attention.query_key_value.weight", 3 * square),
        Tensor(f"{layer}self_attention.output.weight", square),
    ]


def _feed_forward(model: ModelSettings, layer: str) -> list[Tensor]:
    name, product = f"{layer}feed_forward.", model.width * model.filter
    return [
        *_norm(model, f"{name}norm."),
        Tensor(f"{name}inner.weight", product),
        Tensor(f"{name}inner.bias", model.filter),
        Tensor(f"{name}outer.weight", product),
        Tensor(f"{name}outer.bias", model.width),
    ]
