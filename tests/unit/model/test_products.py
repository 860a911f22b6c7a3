import threading
from contextlib import suppress

import pytest
import torch
from torch.nn import functional

from dragoman.distributed import gemm
from dragoman.model.loss import smoothed_cross_entropy
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


@pytest.fixture(params=[False, True], ids=["torch's library", "oneDNN"])
def library(request, monkeypatch):
    monkeypatch.setattr(gemm, "has_faster_onednn", lambda: request.param)


def test_in_fp32_a_layer_is_that_of_torch_by_either_library(library):
    torch.manual_seed(1)
    layer, x = Linear(96, 160), torch.randn(9, 11, 96)
    own = of_layer("fp32", x, layer)
    expected = torch.nn.Linear(96, 160)
    expected.load_state_dict(layer.state_dict())
    for one, other in zip(own, of_layer("fp32", x, expected), strict=True):
        assert one.shape == other.shape
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4 * other.abs().max().item())


def test_gradients_of_layer_and_loss_agree_with_small_differences(library):
    """In fp32, a difference of 1e-2 in one weight is known to about three digits of the loss."""
    torch.manual_seed(1)
    layer, x = Linear(128, 128, bias=False), torch.randn(160, 128)
    weight_VD, target_N = torch.randn(400, 128), torch.randint(400, (160,))

    def loss():
        return smoothed_cross_entropy(layer(x), weight_VD, target_N, 0.1).smoothed

    loss().backward()
    direction = layer.weight.grad / layer.weight.grad.norm()
    predicted = (layer.weight.grad * direction).sum().item()
    with torch.no_grad():
        layer.weight += 5e-3 * direction
        above = loss()
        layer.weight -= 1e-2 * direction
        below = loss()
    assert (above - below).item() / 1e-2 == pytest.approx(predicted, rel=0.02)
