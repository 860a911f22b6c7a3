"""Matrix products of layers, by the units of a CPU that compute them fastest.

In fp32 that may be another library than torch's own (`distributed/gemm.py`). In bf16, where a CPU
has units for it, factors and results of products are rounded, once each, and all between them is
computed and kept in fp32, weights and the sums of gradients included. `torch.autocast` also rounds
what lies between, and its backward is slower on a CPU than that of fp32 (docs/log.md).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.distributed.devices import DTYPES
from dragoman.distributed.gemm import is_worth_onednn, product

_products_are_in_bf16 = ContextVar("products_are_in_bf16", default=False)


def computing_in(precision: str, device_type: str) -> AbstractContextManager[Any]:
    """Returns a context in which a model and its loss are computed in this precision."""
    if (precision, device_type) == ("bf16", "cpu"):
        return _products_in_bf16()
    return torch.autocast(device_type, dtype=DTYPES[precision], enabled=precision != "fp32")


def factor_dtype(device_type: str) -> torch.dtype:
    """Returns what functions with gradients of their own have to round the factors of products to.

    Autocast does not reach into them.
    """
    if device_type == "cpu" and _products_are_in_bf16.get():
        return torch.bfloat16
    if torch.is_autocast_enabled(device_type):
        return torch.get_autocast_dtype(device_type)
    return torch.float32


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns what `torch.nn.functional.linear` does."""
    if x.device.type == "cpu":
        dtype = torch.bfloat16 if _products_are_in_bf16.get() else torch.float32
        if dtype == torch.bfloat16 or is_worth_onednn(x.flatten(0, -2), weight.T):
            found: Tensor = _Linear.apply(x, weight, bias, dtype)  # type: ignore[no-untyped-call]
            return found
    return functional.linear(x, weight, bias)


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


@contextmanager
def _products_in_bf16() -> Iterator[None]:
    before = _products_are_in_bf16.set(True)
    try:
        yield
    finally:
        _products_are_in_bf16.reset(before)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """Computes a product whose factors are rounded to `dtype`."""
        x_NI, weight_OI = x.flatten(0, -2).to(dtype), weight.to(dtype)
        ctx.save_for_backward(x_NI, weight_OI)
        ctx.has_bias = bias is not None
        if dtype == torch.float32:
            found_NO = product(x_NI, weight_OI.T, bias)
        else:
            found_NO = product(x_NI, weight_OI.T).float()
            if bias is not None:
                found_NO += bias
        # A view could not be changed in place any more.
        return found_NO if x.ndim == 2 else found_NO.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x_NI, weight_OI = ctx.saved_tensors
        (gradient,) = gradients
        gradient_NO = gradient.flatten(0, -2)
        rounded_NO = gradient_NO.to(x_NI.dtype)
        of_x = product(rounded_NO, weight_OI).float().view(*gradient.shape[:-1], -1)
        of_weight = product(rounded_NO.T, x_NI).float()
        return of_x, of_weight, gradient_NO.sum(dim=0) if ctx.has_bias else None, None
