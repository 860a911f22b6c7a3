import threading
from contextlib import suppress

import torch
from torch.nn import functional

from dragoman.model.products import Linear, computing_in, factor_dtype, linear

ROUNDING = 2.0**-8
"""Half of the distance between two neighbors in bf16, relative to the smaller one."""


def of_layer(precision, x, layer):
    """Returns the output of a layer and the gradients of input, weight and bias."""
    x = x.clone().requires_grad_()
    layer.zero_grad()
    with computing_in(precision, "cpu"):
        output = layer(x)
    output.square().sum().backward()
    return output.detach(), x.grad, layer.weight.grad, layer.bias.grad


def test_in_bf16_only_factors_and_products_are_rounded():
    torch.manual_seed(1)
    layer = Linear(48, 80)
    x = torch.randn(3, 7, 48)
    exact, rounded = (of_layer(precision, x, layer) for precision in ("fp32", "bf16"))
    for one, other in zip(exact, rounded, strict=True):
        assert one.shape == other.shape
        assert other.dtype is torch.float32
        assert 0 < (one - other).norm() < 2 * ROUNDING * one.norm()


def test_a_bias_is_added_in_fp32():
    bias = torch.tensor([1.0 + 2.0**-20])  # which bf16 would round to 1
    with computing_in("bf16", "cpu"):
        assert torch.equal(linear(torch.zeros(2, 4), torch.ones(1, 4), bias), bias.expand(2, 1))


def test_factors_that_bf16_holds_have_exact_products():
    x, weight = torch.arange(12.0).view(3, 4), torch.eye(4)
    with computing_in("bf16", "cpu"):
        assert torch.equal(linear(x, weight), x)


def test_the_sum_of_a_product_is_exact_until_it_is_rounded_once():
    x, weight = torch.tensor([[1.0, 2.0**-10, -1.0]]), torch.ones(1, 3)
    with computing_in("bf16", "cpu"):
        assert linear(x, weight).item() == 2.0**-10
        assert linear(x[:, :2], weight[:, :2]).item() == 1.0  # of 1 + 2^-10


def test_outside_the_context_nothing_is_rounded():
    torch.manual_seed(1)
    x, weight = torch.randn(5, 16), torch.randn(8, 16)
    exact = functional.linear(x, weight)
    with computing_in("fp32", "cpu"):
        assert torch.equal(linear(x, weight), exact)
    with computing_in("bf16", "cpu"):
        assert not torch.equal(linear(x, weight), exact)
    with suppress(ValueError), computing_in("bf16", "cpu"):
        raise ValueError
    assert torch.equal(linear(x, weight), exact)


def test_other_threads_compute_as_before():
    found = []
    with computing_in("bf16", "cpu"):
        thread = threading.Thread(target=lambda: found.append(factor_dtype("cpu")))
        thread.start()
        thread.join()
        assert factor_dtype("cpu") is torch.bfloat16
    assert found == [torch.float32]


def test_fp16_is_left_to_autocast():
    with computing_in("fp16", "cpu"):
        assert factor_dtype("cpu") is torch.float16
        assert linear(torch.ones(2, 4), torch.ones(3, 4)).dtype is torch.float16
