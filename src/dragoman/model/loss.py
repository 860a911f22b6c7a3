"""Label-smoothed cross-entropy as a sum over tokens, without all logits at once.

The output projection is the largest matrix of a step: 25,000 tokens times 32,768 pieces are
3.3 GB of logits, and as much again for their gradient. Here a chunk of tokens at a time goes
through projection, loss and gradient, so that memory is bounded by the chunk, and no product is
computed twice.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.batches.collate import Batch
from dragoman.distributed.gemm import is_worth_onednn, product
from dragoman.model.products import factor_dtype
from dragoman.model.r_drop import consistent_cross_entropy, doubled
from dragoman.model.size import FP32_BYTES
from dragoman.model.transformer import Transformer

# Logits of a chunk in bytes: on CPU they should stay in the cache, on a GPU keep it busy.
CHUNK_BYTES = {"cpu": 8 << 20, "cuda": 256 << 20}


class LossSums(NamedTuple):
    smoothed: Tensor
    """What training minimizes, in nats, summed over target tokens."""
    likelihood: Tensor
    """Negative log-likelihood without smoothing, summed likewise."""
    likelihood_N: Tensor
    """The same for each target token, without a gradient."""


class Objective(nn.Module):
    """Model and loss in one forward, which is what data parallelism wraps."""

    def __init__(self, model: Transformer, label_smoothing: float, r_drop: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.r_drop = r_drop

    def forward(self, batch: Batch) -> LossSums:
        passes_twice = self.r_drop > 0 and self.training
        if passes_twice:
            batch = doubled(batch)
        hidden_BTD = self.model(batch.source_BS, batch.source_mask, batch.target_in_BT)
        hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, batch.token_positions_N)
        if passes_twice:
            hidden_2ND, weight_VD = _rounded(hidden_ND, self.model.output_weight)
            smoothing, chunk_bytes = self.label_smoothing, _chunk_bytes(hidden_2ND)
            return LossSums(
                *consistent_cross_entropy(
                    *(hidden_2ND, weight_VD, batch.target_out_N),
                    *(smoothing, self.r_drop, chunk_bytes),
                )
            )
        return smoothed_cross_entropy(
            hidden_ND, self.model.output_weight, batch.target_out_N, self.label_smoothing
        )


def smoothed_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float
) -> LossSums:
    """Returns sums over N of the loss against (1 - smoothing) on the target plus a uniform rest."""
    hidden_ND, weight_VD = _rounded(hidden_ND, weight_VD)
    sums = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, target_N, smoothing
    )
    return LossSums(*sums)


def _rounded(hidden_ND: Tensor, weight_VD: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both as factors of products have to be."""
    dtype = factor_dtype(hidden_ND.device.type)
    return hidden_ND.to(dtype), weight_VD.to(dtype)


def _chunk_bytes(hidden_ND: Tensor) -> int:
    return CHUNK_BYTES.get(hidden_ND.device.type, CHUNK_BYTES["cpu"])


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Adds the product of two matrices, which may have fewer bits than the total."""
    if left.dtype == total.dtype and not is_worth_onednn(left, right):
        total.addmm_(left, right)
    else:
        total += product(left, right)


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        tokens, vocabulary = hidden_ND.shape[0], weight_VD.shape[0]
        exact = torch.empty(0, dtype=torch.float32, device=hidden_ND.device)
        rows = min(tokens, max(1, _chunk_bytes(hidden_ND) // (FP32_BYTES * vocabulary)))
        log_shares = exact.new_empty(rows, vocabulary)
        likelihood_N = exact.new_empty(tokens)
        learning = any(ctx.needs_input_grad[:2])
        # Gradients are kept in fp32 until backward knows the scale that keeps fp16 from underflow.
        grad_hidden = torch.empty_like(hidden_ND, dtype=torch.float32) if learning else None
        # Transposed, so that the smaller factor of its products is the one that oneDNN copies.
        grad_weight_DV = exact.new_zeros(weight_VD.T.shape) if learning else None
        for begin in range(0, tokens, rows):
            part = slice(begin, begin + rows)
            hidden, target_C1 = hidden_ND[part], target_N[part].unsqueeze(1)
            logits_CV = product(hidden, weight_VD.T)
            log_CV = torch.log_softmax(logits_CV.float(), dim=1, out=log_shares[: len(hidden)])
            likelihood_N[part] = -log_CV.gather(1, target_C1).squeeze(1)
            if grad_hidden is not None and grad_weight_DV is not None:
                grad_CV = log_CV.exp_()
                on_target_C1 = torch.full_like(target_C1, smoothing - 1, dtype=torch.float32)
                grad_CV.scatter_add_(1, target_C1, on_target_C1)
                grad = grad_CV.to(hidden.dtype)
                grad_hidden[part] = product(grad, weight_VD)
                _add_product(grad_weight_DV, hidden.T, grad)
        likelihood = likelihood_N.sum()
        smoothed = likelihood.clone()
        if smoothing:
            # The uniform rest is linear in the logits, so it needs none of them: their mean over
            # all pieces is the product with the mean of the weights.
            mean_D = weight_VD.float().mean(dim=0)
            beyond_mean_ND = weight_VD.index_select(0, target_N).float() - mean_D
            smoothed = likelihood + smoothing * (beyond_mean_ND * hidden_ND).sum()
            if grad_hidden is not None and grad_weight_DV is not None:
                grad_hidden.sub_(mean_D, alpha=smoothing)
                of_rest_D1 = hidden_ND.float().sum(dim=0).unsqueeze(1)
                grad_weight_DV.sub_(of_rest_D1, alpha=smoothing / vocabulary)
        if learning:
            ctx.save_for_backward(grad_hidden, grad_weight_DV)
            ctx.dtypes = hidden_ND.dtype, weight_VD.dtype
        ctx.mark_non_differentiable(likelihood, likelihood_N)
        return smoothed, likelihood, likelihood_N

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden, grad_weight_DV = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        scale = gradients[0]
        return (
            (grad_hidden * scale).to(hidden_dtype),
            (grad_weight_DV.T * scale).to(weight_dtype),
            None,
            None,
        )
