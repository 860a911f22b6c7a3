"""Multi-head attention with fused projections, over whole sequences and one position at a time."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class KeysValues(NamedTuple):
    keys_BHLK: Tensor
    values_BHLK: Tensor

    def rows(self, numbers: Tensor) -> "KeysValues":
        return KeysValues(
            self.keys_BHLK.index_select(0, numbers), self.values_BHLK.index_select(0, numbers)
        )

    def append(self, new: "KeysValues") -> "KeysValues":
        return KeysValues(
            torch.cat([self.keys_BHLK, new.keys_BHLK], dim=2),
            torch.cat([self.values_BHLK, new.values_BHLK], dim=2),
        )


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query_key_value = _projection(width, parts=3)
        self.output = _projection(width)

    def forward(self, x_BLD: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        query, key, value = _split_heads(self.query_key_value(x_BLD), 3, self.heads)
        attended = scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=causal,
        )
        return _join_heads(attended, self.output)

    def step(self, x_R1D: Tensor, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        """Returns the attention of the newest position over all so far, and the longer past."""
        query, key, value = _split_heads(self.query_key_value(x_R1D), 3, self.heads)
        now = KeysValues(key, value)
        seen = past.append(now) if past else now
        attended = scaled_dot_product_attention(query, seen.keys_BHLK, seen.values_BHLK)
        return _join_heads(attended, self.output), seen


class CrossAttention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = _projection(width)
        self.key_value = _projection(width, parts=2)
        self.output = _projection(width)

    def project(self, encoded_BSD: Tensor) -> KeysValues:
        """Returns keys and values of the source; decoding computes them once per sentence."""
        return KeysValues(*_split_heads(self.key_value(encoded_BSD), 2, self.heads))

    def forward(self, x_BTD: Tensor, source: KeysValues, mask: Tensor | None) -> Tensor:
        (query,) = _split_heads(self.query(x_BTD), 1, self.heads)
        attended = scaled_dot_product_attention(
            query,
            source.keys_BHLK,
            source.values_BHLK,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return _join_heads(attended, self.output)


def _projection(width: int, parts: int = 1) -> nn.Linear:
    linear = nn.Linear(width, parts * width, bias=False)
    # Xavier's bound for each part on its own, as if the parts had not been fused.
    bound = (6 / (2 * width)) ** 0.5
    nn.init.uniform_(linear.weight, -bound, bound)
    return linear


def _split_heads(x: Tensor, parts: int, heads: int) -> list[Tensor]:
    batch, length, width = x.shape
    split = x.view(batch, length, parts, heads, width // (parts * heads)).permute(2, 0, 3, 1, 4)
    return list(split)


def _join_heads(x_BHLK: Tensor, output: nn.Linear) -> Tensor:
    joined: Tensor = output(x_BHLK.transpose(1, 2).flatten(2))
    return joined
