"""Multi-head attention with fused projections, over whole sequences and one position at a time."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from dragoman.model.dropout import Dropout, has_rows, keep_mask
from dragoman.model.products import Linear

FAST_SOFTMAX_LENGTH = 16
"""Below the width of a vector register, torch's softmax computes one number at a time: 14 take 7
times as long as the same in steps over all rows (AVX-512, docs/log.md)."""


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
        self.heads, self.dropout = heads, Dropout(dropout)
        self.query_key_value = _projection(width, parts=3)
        self.output = _projection(width)

    def forward(self, x_BLD: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        query, key, value = _split_heads(self.query_key_value(x_BLD), 3, self.heads)
        attended = _attend(query, KeysValues(key, value), self.dropout, mask, causal)
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
        self.heads, self.dropout = heads, Dropout(dropout)
        self.query = _projection(width)
        self.key_value = _projection(width, parts=2)
        self.output = _projection(width)

    def project(self, encoded_BSD: Tensor) -> KeysValues:
        """Returns keys and values of the source; decoding computes them once per sentence."""
        return KeysValues(*_split_heads(self.key_value(encoded_BSD), 2, self.heads))

    def forward(self, x_BTD: Tensor, source: KeysValues, mask: Tensor | None) -> Tensor:
        (query,) = _split_heads(self.query(x_BTD), 1, self.heads)
        attended = _attend(query, source, self.dropout, mask)
        return _join_heads(attended, self.output)

    def weights(self, x_BTD: Tensor, source: KeysValues, mask: Tensor | None) -> Tensor:
        """Returns how much each position attends to each source token, the mean of all heads."""
        (query_BHTK,) = _split_heads(self.query(x_BTD), 1, self.heads)
        scores_BHTS = query_BHTK @ source.keys_BHLK.mT * query_BHTK.shape[-1] ** -0.5
        if mask is not None:
            scores_BHTS = scores_BHTS.masked_fill(~mask, -torch.inf)
        weights_BTS: Tensor = scores_BHTS.softmax(dim=-1).mean(dim=1)
        return weights_BTS


def _attend(
    query_BHLK: Tensor,
    source: KeysValues,
    dropout: Dropout,
    mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    keys, values = source
    shape = (*query_BHLK.shape[:3], keys.shape[2])
    if not dropout.drops or not has_rows(query_BHLK.device, math.prod(shape)):
        share = dropout.share if dropout.drops else 0.0
        return scaled_dot_product_attention(
            query_BHLK, keys, values, attn_mask=mask, dropout_p=share, is_causal=causal
        )
    # On CPU, torch leaves its fast path for dropout and takes twice as long; this does not.
    if causal:
        length = query_BHLK.shape[2]
        mask = torch.ones(length, length, dtype=torch.bool).tril()
    keep_BHLS = keep_mask(dropout.share, shape).to(query_BHLK.dtype)
    attended: Tensor = _DroppedAttention.apply(  # type: ignore[no-untyped-call]
        query_BHLK, keys, values, mask, keep_BHLS, dropout.scale
    )
    return attended


class _DroppedAttention(torch.autograd.Function):
    """Attention with dropout of its weights, which are all kept for backward; for a CPU."""

    @staticmethod
    def forward(
        ctx: Any,
        query_BHLK: Tensor,
        key_BHSK: Tensor,
        value_BHSK: Tensor,
        mask: Tensor | None,
        keep_BHLS: Tensor,
        scale: float,
    ) -> Tensor:
        query, key, value = (x.flatten(0, 1) for x in (query_BHLK, key_BHSK, value_BHSK))
        scores = torch.bmm(query, key.mT).mul_(query.shape[-1] ** -0.5)
        if mask is not None:
            scores.view_as(keep_BHLS).masked_fill_(~mask, -torch.inf)
        weights, keep = _softmax(scores), keep_BHLS.flatten(0, 1)
        kept = torch.mul(weights, keep, out=scores)
        ctx.save_for_backward(query, key, value, weights, keep)
        ctx.scale = scale
        return torch.bmm(kept, value).mul_(scale).view_as(query_BHLK)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, keep = ctx.saved_tensors
        (gradient_BHLK,) = gradients
        gradient = gradient_BHLK.flatten(0, 1) * ctx.scale
        of_value = torch.bmm((weights * keep).mT, gradient)
        of_weights = torch.bmm(gradient, value.mT).mul_(keep)
        of_scores = _softmax_gradient(of_weights, weights)
        of_scores.mul_(query.shape[-1] ** -0.5)
        of_query, of_key = torch.bmm(of_scores, key), torch.bmm(of_scores.mT, query)
        batch, heads = gradient_BHLK.shape[:2]
        of_inputs = (of_query, of_key, of_value)
        return *(each.view(batch, heads, *each.shape[1:]) for each in of_inputs), None, None, None


def _softmax(scores_NLS: Tensor) -> Tensor:
    """Returns the softmax over the last dimension, which may overwrite the scores."""
    if scores_NLS.shape[-1] >= FAST_SOFTMAX_LENGTH:
        return scores_NLS.softmax(dim=-1)
    weights = scores_NLS.sub_(scores_NLS.amax(dim=-1, keepdim=True)).exp_()
    return weights / weights.sum(dim=-1, keepdim=True)


def _softmax_gradient(gradient_NLS: Tensor, weights_NLS: Tensor) -> Tensor:
    if weights_NLS.shape[-1] >= FAST_SOFTMAX_LENGTH:
        return torch._softmax_backward_data(gradient_NLS, weights_NLS, -1, weights_NLS.dtype)
    product = gradient_NLS * weights_NLS
    return product.addcmul_(weights_NLS, product.sum(dim=-1, keepdim=True), value=-1)


def _projection(width: int, parts: int = 1) -> Linear:
    linear = Linear(width, parts * width, bias=False)
    # Xavier's bound for each part on its own, as if the parts had not been fused.
    bound = (6 / (2 * width)) ** 0.5
    nn.init.uniform_(linear.weight, -bound, bound)
    return linear


def _split_heads(x: Tensor, parts: int, heads: int) -> list[Tensor]:
    batch, length, width = x.shape
    split = x.view(batch, length, parts, heads, width // (parts * heads)).permute(2, 0, 3, 1, 4)
    return list(split)


def _join_heads(x_BHLK: Tensor, output: Linear) -> Tensor:
    joined: Tensor = output(x_BHLK.transpose(1, 2).flatten(2))
    return joined
