"""R-Drop: every pair passes the model twice, and the two predictions are drawn to each other.

Dropout makes the passes differ. The loss of a token is the mean of the cross-entropies of both,
plus weight / 4 times KL(first, second) + KL(second, first): half of what Liang et al. (2021) sum
up, so that losses compare with those of other runs, and their weights mean the same here.

As in `loss`, a chunk of tokens at a time goes through projection, loss and gradient.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dragoman.batches.collate import Batch
from dragoman.distributed.gemm import product


def doubled(batch: Batch) -> Batch:
    """Returns a batch with each pair twice, whose target tokens are listed once.

    The positions of the first pass come before those of the second.
    """
    mask = batch.source_mask
    return replace(
        batch,
        source_BS=batch.source_BS.repeat(2, 1),
        source_mask=None if mask is None else mask.repeat(2, 1, 1, 1),
        target_in_BT=batch.target_in_BT.repeat(2, 1),
        token_positions_N=torch.cat(
            [batch.token_positions_N, batch.token_positions_N + batch.target_in_BT.numel()]
        ),
    )


def consistent_cross_entropy(
    hidden_2ND: Tensor,
    weight_VD: Tensor,
    target_N: Tensor,
    smoothing: float,
    r_drop: float,
    chunk_bytes: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the loss and the likelihood summed over N, and the likelihood of each token.

    `hidden_2ND` holds the tokens of the first pass, then those of the second.
    """
    sums: tuple[Tensor, Tensor, Tensor] = _ChunkedConsistency.apply(  # type: ignore[no-untyped-call]
        hidden_2ND, weight_VD, target_N, smoothing, r_drop, chunk_bytes
    )
    return sums


class _ChunkedConsistency(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_2ND: Tensor,
        weight_VD: Tensor,
        target_N: Tensor,
        smoothing: float,
        r_drop: float,
        chunk_bytes: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        tokens, vocabulary = len(target_N), weight_VD.shape[0]
        # Gradients are kept in fp32 until backward knows the scale that keeps fp16 from underflow.
        exact = torch.promote_types(hidden_2ND.dtype, torch.float32)
        rows = max(1, chunk_bytes // (2 * exact.itemsize * vocabulary))
        hidden_2ND = hidden_2ND.view(2, tokens, -1)
        grad_hidden = torch.empty_like(hidden_2ND, dtype=exact)
        grad_weight = torch.zeros_like(weight_VD, dtype=exact)
        loss = torch.zeros((), dtype=exact, device=hidden_2ND.device)
        likelihood_N = torch.empty(tokens, dtype=exact, device=hidden_2ND.device)
        for begin in range(0, tokens, rows):
            part = slice(begin, begin + rows)
            target_C1 = target_N[part].unsqueeze(1)
            hidden_2CD = hidden_2ND[:, part]
            logits_2CV = product(hidden_2CD.flatten(0, 1), weight_VD.T).view(2, -1, vocabulary)
            log_2CV = logits_2CV.to(exact).log_softmax(dim=2)
            target_2C1 = log_2CV.gather(2, target_C1.expand(2, -1, -1))
            likelihood_N[part] = -target_2C1.mean(dim=0).squeeze(1)
            loss -= (1 - smoothing) * target_2C1.sum() / 2
            loss -= smoothing * log_2CV.mean(dim=2).sum() / 2
            # Sums of p log(p / q), where p is a pass and q the other one.
            further_2CV = log_2CV - log_2CV.flip(0)
            share_2CV = log_2CV.exp_()
            divergence_2C1 = (share_2CV * further_2CV).sum(dim=2, keepdim=True)
            loss += r_drop / 4 * divergence_2C1.sum()
            if any(ctx.needs_input_grad):
                grad_2CV = further_2CV.sub_(divergence_2C1).mul_(share_2CV)
                grad_2CV.add_(share_2CV).sub_(share_2CV.flip(0)).mul_(r_drop / 4)
                grad_2CV.add_(share_2CV, alpha=0.5).sub_(smoothing / (2 * vocabulary))
                target_grad = torch.full_like(target_2C1, -(1 - smoothing) / 2)
                grad_2CV.scatter_add_(2, target_C1.expand(2, -1, -1), target_grad)
                grad = grad_2CV.to(hidden_2ND.dtype)
                grad = grad.flatten(0, 1)
                grad_hidden[:, part] = product(grad, weight_VD).view_as(hidden_2CD)
                grad_weight += product(grad.T, hidden_2CD.flatten(0, 1))
        ctx.save_for_backward(grad_hidden.flatten(0, 1), grad_weight)
        ctx.dtypes = hidden_2ND.dtype, weight_VD.dtype
        likelihood = likelihood_N.sum()
        ctx.mark_non_differentiable(likelihood, likelihood_N)
        return loss, likelihood, likelihood_N

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        scale = gradients[0]
        return (
            (grad_hidden * scale).to(hidden_dtype),
            (grad_weight * scale).to(weight_dtype),
            *(None,) * 4,
        )
