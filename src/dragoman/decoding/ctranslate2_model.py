"""Our weights as a model of CTranslate2: tensors come in, a folder that its package loads goes out.

Built directly as CTranslate2's own specification of a Transformer. Nothing has to be reordered:
CTranslate2 has the same fused projections, the same norms and the same positions. torch, which
CTranslate2's specifications import too, is imported by `write_model` alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.config import ModelSettings
from dragoman.decoding.engine import Precision
from dragoman.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

CONVERTER = 2
"""Part of the hash under which a converted model is kept; another number where the same weights
become other files."""

MODEL_FILES = ("model.bin", "config.json", "shared_vocabulary.json")


def write_model(
    folder: Path,
    settings: ModelSettings,
    weights: "Mapping[str, Tensor]",
    tokenizer: Tokenizer,
    precision: Precision = "float32",
) -> None:
    """Writes the files of the model into an existing folder."""
    from ctranslate2.specs import TransformerSpec  # noqa: PLC0415

    from dragoman.model.transformer import alignment_layer  # noqa: PLC0415

    layers = settings.encoder_layers, settings.decoder_layers
    spec = TransformerSpec.from_config(
        layers,
        settings.heads,
        pre_norm=True,
        # What `return_attention` gives: the same as `Transformer.attention`.
        alignment_layer=alignment_layer(settings.decoder_layers),
        alignment_heads=settings.heads,
    )
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in weights.items()}
    # One array for all three: CTranslate2 then stores it once.
    embedding = arrays["embedding.weight"]
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part.scale_embeddings = True
        _set_norm(part.layer_norm, arrays, f"{side}_norm")
        for number, layer in enumerate(part.layer):
            _set_layer(layer, arrays, f"{side}.{number}")

    pieces = tokenizer.pieces
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token = pieces[tokenizer.unknown]
    spec.config.eos_token = pieces[tokenizer.end]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[tokenizer.start]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))


def _set_layer(layer: Any, arrays: Mapping[str, Any], name: str) -> None:
    attention = f"{name}.self_attention"
    _set_norm(layer.self_attention.layer_norm, arrays, f"{name}.self_norm")
    layer.self_attention.linear[0].weight = arrays[f"{attention}.query_key_value.weight"]
    layer.self_attention.linear[1].weight = arrays[f"{attention}.output.weight"]
    if (attention := f"{name}.cross_attention") + ".query.weight" in arrays:
        _set_norm(layer.attention.layer_norm, arrays, f"{name}.cross_norm")
        for linear, part in zip(
            layer.attention.linear, ("query", "key_value", "output"), strict=True
        ):
            linear.weight = arrays[f"{attention}.{part}.weight"]
    _set_norm(layer.ffn.layer_norm, arrays, f"{name}.feed_forward.norm")
    for linear, part in ((layer.ffn.linear_0, "inner"), (layer.ffn.linear_1, "outer")):
        linear.weight = arrays[f"{name}.feed_forward.{part}.weight"]
        linear.bias = arrays[f"{name}.feed_forward.{part}.bias"]


def _set_norm(norm: Any, arrays: Mapping[str, np.ndarray[Any, Any]], name: str) -> None:
    norm.gamma, norm.beta = arrays[f"{name}.weight"], arrays[f"{name}.bias"]
