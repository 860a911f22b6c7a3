"""The shape of the model: a preset, and what a recipe changes of it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dragoman.config.bounds import DropoutShare, Layers, between
from dragoman.config.section import Section


def _shape(encoder: int, decoder: int, **sizes: int) -> dict[str, int]:
    return {"encoder_layers": encoder, "decoder_layers": decoder, **sizes}


# Shapes only: what regularizes a model depends on the data, so dropout is a key of its own.
PRESETS: Mapping[str, Mapping[str, int]] = {
    "transformer-tiny": _shape(4, 4, width=128, heads=4, filter=256),
    "transformer-small": _shape(3, 3, width=256, heads=4, filter=1024),
    "transformer-base": _shape(6, 6, width=512, heads=8, filter=2048),
    "transformer-big": _shape(6, 6, width=1024, heads=16, filter=4096),
    # About as many parameters as tiny and base. A decoder layer works for every piece of a
    # translation, one after the other, an encoder layer once a sentence (Kasai et al. 2021).
    "transformer-tiny-deep-shallow": _shape(8, 1, width=128, heads=4, filter=256),
    "transformer-deep-shallow": _shape(12, 1, width=512, heads=8, filter=2048),
}


class ModelSettings(Section):
    preset: Literal[
        "transformer-tiny",
        "transformer-small",
        "transformer-base",
        "transformer-big",
        "transformer-tiny-deep-shallow",
        "transformer-deep-shallow",
    ]
    """Sets layers, width, heads and filter; each can be overridden on its own. Those named
    deep-shallow have many encoder layers and one decoder layer, and translate faster."""
    encoder_layers: Layers
    """Number of encoder layers."""
    decoder_layers: Layers
    """Number of decoder layers."""
    width: Annotated[int, Field(multiple_of=2), between(2, 65_536)]
    """Size of the vector that represents one token."""
    heads: Annotated[int, between(1, 1024)]
    """Number of attention heads; must divide width."""
    filter: Annotated[int, between(1, 1_048_576)]
    """Inner size of the feed-forward layers."""
    dropout: DropoutShare = 0.1
    """Dropout on embeddings and on the output of each sublayer."""
    attention_dropout: DropoutShare = 0.0
    """Dropout on attention weights."""
    activation_dropout: DropoutShare = 0.0
    """Dropout inside the feed-forward layers."""

    @model_validator(mode="before")
    @classmethod
    def fill_from_preset(cls, given: Any) -> Any:
        preset = given.get("preset") if isinstance(given, dict) else None
        if not isinstance(preset, str) or preset not in PRESETS:
            return given
        return {**PRESETS[preset], **given}

    @model_validator(mode="after")
    def heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads} does not divide width = {self.width}")
        return self
