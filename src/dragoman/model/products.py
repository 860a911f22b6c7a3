"""Matrix products of layers, with factors in bf16 where a CPU has units for them (AMX).

`torch.autocast` also rounds what lies between the products, and its backward is slower on a CPU
than that of fp32 (docs/log.md). Here only factors and results of these products are rounded, once
each: all between them is computed and kept in fp32, weights and the sums of gradients included.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.distributed.devices import DTYPES

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
    if not _products_are_in_bf16.get() or x.device.type != "cpu":
        return functional.linear(x, weight, bias)
    product: Tensor = _LinearInBf16.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return product


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


class _LinearInBf16(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x_NI, weight_OI = x.flatten(0, -2).bfloat16(), weight.bfloat16()
        ctx.save_for_backward(x_NI, weight_OI)
        ctx.has_bias = bias is not None
        product = torch.mm(x_NI, weight_OI.T).float()
        if bias is not None:
            product += bias
        # A view could not be changed in place any more.
        return product if x.ndim == 2 else product.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x_NI, weight_OI = ctx.saved_tensors
        (gradient,) = gradients
        gradient_NO = gradient.flatten(0, -2)
        rounded_NO = gradient_NO.bfloat16()
        of_x = torch.mm(rounded_NO, weight_OI).float().view(*gradient.shape[:-1], -1)
        of_weight = torch.mm(rounded_NO.T, x_NI).float()
        return of_x, of_weight, gradient_NO.sum(dim=0) if ctx.has_bias else None
