"""Encoder-decoder Transformer, pre-norm, with one embedding for source, target and output."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dragoman.config import ModelSettings
from dragoman.model.attention import CrossAttention, KeysValues, SelfAttention
from dragoman.model.dropout import Dropout
from dragoman.model.products import Linear, linear


@dataclass(frozen=True)
class Source:
    """Encoded sentences as keys and values for the decoder: one entry per decoder layer."""

    layers: tuple[KeysValues, ...]
    mask: Tensor | None

    def rows(self, numbers: Tensor) -> "Source":
        mask = None if self.mask is None else self.mask.index_select(0, numbers)
        return Source(tuple(layer.rows(numbers) for layer in self.layers), mask)


@dataclass(frozen=True)
class Prefix:
    """Target positions decoded so far: keys and values of each layer, and their number."""

    layers: tuple[KeysValues, ...] = ()
    length: int = 0

    def rows(self, numbers: Tensor) -> "Prefix":
        return Prefix(tuple(layer.rows(numbers) for layer in self.layers), self.length)


_DRAWS = (
    *(nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_),
    *(Tensor.normal_, Tensor.uniform_),
)


class _DrawNothing(TorchFunctionMode):
    """Draws no weights for new modules.

    On the meta device each draw goes through torch's compiler, whose first import takes more than
    two seconds of processor time (torch 2.13).
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def without_weights(settings: ModelSettings, vocabulary: int) -> "Transformer":
    """Returns a model whose weights take no memory, and have to be assigned before it is used."""
    with torch.device("meta"), _DrawNothing():
        return Transformer(settings, vocabulary)


class Transformer(nn.Module):
    def __init__(self, settings: ModelSettings, vocabulary: int) -> None:
        super().__init__()
        self.width = settings.width
        self.embedding = nn.Embedding(vocabulary, settings.width)
        nn.init.normal_(self.embedding.weight, std=settings.width**-0.5)
        self.dropout = Dropout(settings.dropout)
        self.encoder = _layers(EncoderLayer, settings, settings.encoder_layers)
        self.encoder_norm = nn.LayerNorm(settings.width)
        self.decoder = _layers(DecoderLayer, settings, settings.decoder_layers)
        self.decoder_norm = nn.LayerNorm(settings.width)

    def forward(self, source_BS: Tensor, source_mask: Tensor | None, target_BT: Tensor) -> Tensor:
        """Returns the final hidden states; `output_weight` projects them to logits."""
        source = self.encode(source_BS, source_mask)
        x_BTD = self._embed(target_BT)
        for layer, looked_up in zip(self.decoder, source.layers, strict=True):
            x_BTD = layer(x_BTD, looked_up, source.mask)
        hidden: Tensor = self.decoder_norm(x_BTD)
        return hidden

    def encode(self, source_BS: Tensor, source_mask: Tensor | None) -> Source:
        """Encodes sentences; `source_mask` is [B, 1, 1, S], True for tokens, or None if all are."""
        x_BSD = self._embed(source_BS)
        for layer in self.encoder:
            x_BSD = layer(x_BSD, source_mask)
        x_BSD = self.encoder_norm(x_BSD)
        looked_up = tuple(layer.cross_attention.project(x_BSD) for layer in self.decoder)
        return Source(looked_up, source_mask)

    def step(self, tokens_R: Tensor, prefix: Prefix, source: Source) -> tuple[Tensor, Prefix]:
        """Returns the hidden state [R, D] after one more token per row, and the longer prefix.

        R is a multiple of the sentences in `source`: rows of one sentence are adjacent.
        """
        x_R1D = self._embed(tokens_R.unsqueeze(1), first_position=prefix.length)
        longer = []
        for number, (layer, looked_up) in enumerate(zip(self.decoder, source.layers, strict=True)):
            past = prefix.layers[number] if prefix.layers else None
            x_R1D, seen = layer.step(x_R1D, past, looked_up, source.mask)
            longer.append(seen)
        return self.decoder_norm(x_R1D).squeeze(1), Prefix(tuple(longer), prefix.length + 1)

    def attention(self, source: Source, target_BT: Tensor) -> Tensor:
        """Returns [B, T, S]: what each position attends to in the source while it is predicted.

        Of the decoder's layer `alignment_layer`, averaged over heads; for a model in evaluation
        mode. `target_BT` begins with the start piece, as in `forward`.
        """
        last = alignment_layer(len(self.decoder))
        x_BTD = self._embed(target_BT)
        for layer, looked_up in zip(self.decoder[:last], source.layers[:last], strict=True):
            x_BTD = layer(x_BTD, looked_up, source.mask)
        return self.decoder[last].attention(x_BTD, source.layers[last], source.mask)

    @property
    def output_weight(self) -> Tensor:
        return self.embedding.weight

    def _embed(self, tokens_BL: Tensor, first_position: int = 0) -> Tensor:
        embedded_BLD = self.embedding(tokens_BL)
        positions_LD = sinusoids(
            first_position, tokens_BL.shape[1], self.width, embedded_BLD.device
        )
        embedded: Tensor = self.dropout(
            torch.add(positions_LD, embedded_BLD, alpha=math.sqrt(self.width))
        )
        return embedded


class EncoderLayer(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.width
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = SelfAttention(width, settings.heads, settings.attention_dropout)
        self.feed_forward = FeedForward(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(self, x_BSD: Tensor, mask: Tensor | None) -> Tensor:
        x_BSD = self.dropout.add(x_BSD, self.self_attention(self.self_norm(x_BSD), mask))
        return self.dropout.add(x_BSD, self.feed_forward(x_BSD))


class DecoderLayer(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.width
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = SelfAttention(width, settings.heads, settings.attention_dropout)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = CrossAttention(width, settings.heads, settings.attention_dropout)
        self.feed_forward = FeedForward(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(self, x_BTD: Tensor, source: KeysValues, source_mask: Tensor | None) -> Tensor:
        # Padding is at the end of a target, where no real position can see it.
        attended = self.self_attention(self.self_norm(x_BTD), causal=True)
        return self._rest(self.dropout.add(x_BTD, attended), source, source_mask)

    def step(
        self,
        x_R1D: Tensor,
        past: KeysValues | None,
        source: KeysValues,
        source_mask: Tensor | None,
    ) -> tuple[Tensor, KeysValues]:
        attended, seen = self.self_attention.step(self.self_norm(x_R1D), past)
        # Rows of one sentence attend to the same source, as if they were positions of
        # one target: so the source's keys and values are never copied for each hypothesis.
        sentences, width = source.keys_BHLK.shape[0], x_R1D.shape[-1]
        together = (x_R1D + attended).view(sentences, -1, width)
        return self._rest(together, source, source_mask).view(-1, 1, width), seen

    def attention(self, x_BTD: Tensor, source: KeysValues, source_mask: Tensor | None) -> Tensor:
        x_BTD = x_BTD + self.self_attention(self.self_norm(x_BTD), causal=True)
        return self.cross_attention.weights(self.cross_norm(x_BTD), source, source_mask)

    def _rest(self, x_BTD: Tensor, source: KeysValues, source_mask: Tensor | None) -> Tensor:
        looked_up = self.cross_attention(self.cross_norm(x_BTD), source, source_mask)
        x_BTD = self.dropout.add(x_BTD, looked_up)
        return self.dropout.add(x_BTD, self.feed_forward(x_BTD))


_Layer = TypeVar("_Layer", EncoderLayer, DecoderLayer)


class FeedForward(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.width)
        self.inner = Linear(settings.width, settings.filter)
        self.outer = Linear(settings.filter, settings.width)
        self.dropout = Dropout(settings.activation_dropout)
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x_BLD: Tensor) -> Tensor:
        # Without the batch's two dimensions, products are no views, in which autograd would have
        # to copy what is changed in place.
        x_ND = self.norm(x_BLD).flatten(0, 1)
        inner_NF, factor = self.dropout.relu(self.inner(x_ND))
        weight = self.outer.weight if factor == 1.0 else self.outer.weight * factor
        return linear(inner_NF, weight, self.outer.bias).view_as(x_BLD)


def _layers(kind: type[_Layer], settings: ModelSettings, count: int) -> Sequence[_Layer]:
    # A ModuleList loses the type of its modules; this restores it.
    return cast(Sequence[_Layer], nn.ModuleList(kind(settings) for _ in range(count)))


def alignment_layer(decoder_layers: int) -> int:
    """Returns which layer of the decoder attends to the source words that it translates.

    The last but one, as Garg et al. (2019) found: the last one already prepares the next piece.
    """
    return max(0, decoder_layers - 2)


def sinusoids(first: int, length: int, width: int, device: torch.device) -> Tensor:
    """Returns positions as [length, width]: sines in the first half, cosines in the second.

    The first token of a sentence, `first` = 0, has the angles of position 1, as in CTranslate2 and
    in M2M100 with padding id 0. A change here makes another model of the same weights: it needs a
    new `checkpoints.names.FORMAT`.
    """
    end = first + length
    return _sinusoid_table(1 << (end - 1).bit_length(), width, device)[first:end]


@lru_cache(maxsize=8)
def _sinusoid_table(length: int, width: int, device: torch.device) -> Tensor:
    position_L1 = torch.arange(1, length + 1, device=device, dtype=torch.float32)[:, None]
    rates = torch.exp(
        torch.arange(width // 2, device=device) * (-math.log(10_000.0) / max(1, width // 2 - 1))
    )
    angles = position_L1 * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)
