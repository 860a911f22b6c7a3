"""What every format writes in its own way."""

from typing import NamedTuple

from torch import Tensor

from dragoman.config import DecodingSettings, ModelSettings
from dragoman.tokenizer import Tokenizer


class Content(NamedTuple):
    name: str
    """Of the recipe."""
    source_language: str
    target_language: str
    """ISO 639 codes."""
    model: ModelSettings
    weights: dict[str, Tensor]
    """By the names of our own model, on the CPU."""
    tokenizer: Tokenizer
    decoding: DecodingSettings
    card: str
    """README.md, without the section on how to load this format."""
