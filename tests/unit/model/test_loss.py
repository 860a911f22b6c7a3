import pytest
import torch
from torch.nn.functional import cross_entropy

from dragoman.model import loss as loss_module
from dragoman.model.loss import smoothed_cross_entropy


def example(tokens=37, width=16, vocabulary=50):
    torch.manual_seed(1)
    hidden = torch.randn(tokens, width, requires_grad=True)
    weight = torch.randn(vocabulary, width, requires_grad=True)
    return hidden, weight, torch.randint(0, vocabulary, (tokens,))


@pytest.fixture(params=[1, 7, 37, 1000], ids="chunks of {} rows".format)
def chunk_rows(request, monkeypatch):
    monkeypatch.setitem(loss_module.CHUNK_BYTES, "cpu", request.param * 4 * 50)


@pytest.mark.usefixtures("chunk_rows")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_all_logits_at_once(smoothing):
    hidden, weight, target = example()
    sums = smoothed_cross_entropy(hidden, weight, target, smoothing)
    (3 * sums.smoothed).backward()
    ours = hidden.grad, weight.grad

    hidden.grad = weight.grad = None
    whole = cross_entropy(hidden @ weight.T, target, label_smoothing=smoothing, reduction="sum")
    (3 * whole).backward()
    torch.testing.assert_close(sums.smoothed, whole)
    for mine, theirs in zip(ours, (hidden.grad, weight.grad), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_the_likelihood_is_not_smoothed():
    hidden, weight, target = example()
    sums = smoothed_cross_entropy(hidden, weight, target, 0.3)
    expected = cross_entropy(hidden @ weight.T, target, reduction="sum")
    torch.testing.assert_close(sums.likelihood, expected)
    assert not sums.likelihood.requires_grad


def test_no_tensor_of_all_logits_is_ever_made(monkeypatch):
    monkeypatch.setitem(loss_module.CHUNK_BYTES, "cpu", 8 * 4 * 50)
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    hidden, weight, target = example(tokens=1000)
    with Watch():
        smoothed_cross_entropy(hidden, weight, target, 0.1)
    assert 8 * 50 <= largest < 1000 * 50


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_gradients_stay_close(dtype):
    hidden, weight, target = example()
    smoothed_cross_entropy(hidden, weight, target, 0.1).smoothed.backward()
    exact = hidden.grad.clone()
    hidden.grad = weight.grad = None
    with torch.autocast("cpu", dtype=dtype):
        sums = smoothed_cross_entropy(hidden, weight, target, 0.1)
    sums.smoothed.backward()
    assert hidden.grad.dtype == torch.float32
    assert (hidden.grad - exact).norm() < 0.05 * exact.norm()
