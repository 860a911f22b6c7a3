import pytest
import torch

from dragoman.model import dropout
from dragoman.model.dropout import LEAST_ROW, Dropout, keep_mask


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_it_drops_its_share_and_keeps_the_mean(share):
    torch.manual_seed(1)
    dropped = Dropout(share)(torch.ones(1_000_003))
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=0.003)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.003)


def test_the_gradient_flows_where_values_did():
    torch.manual_seed(1)
    x = torch.ones(999, requires_grad=True)
    dropped = Dropout(0.25)(x)
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())


def test_neighbors_fall_independently():
    torch.manual_seed(1)
    kept = (Dropout(0.5)(torch.ones(400_000)) != 0).float()
    for distance in (1, 2, 8, 64):
        together = (kept[distance:] * kept[:-distance]).mean().item()
        assert together == pytest.approx(0.25, abs=0.005)


def test_evaluation_changes_nothing_and_draws_nothing():
    x = torch.ones(100)
    state = torch.get_rng_state()
    assert Dropout(0.5).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), state)


def test_the_same_seed_drops_the_same():
    results = []
    for _ in range(2):
        torch.manual_seed(7)
        results.append(Dropout(0.1)(torch.ones(5000)))
    assert torch.equal(*results)


def test_the_residual_is_added_to_what_a_plain_dropout_would_give():
    dropout, x = Dropout(0.25), torch.randn(50, 40, requires_grad=True)
    residual = torch.randn(50, 40, requires_grad=True)
    torch.manual_seed(3)
    added = dropout.add(residual, x)
    torch.manual_seed(3)
    torch.testing.assert_close(added, residual + x * keep_mask(0.25, x.shape) / 0.75)
    added.backward(torch.full_like(x, 2.0))
    assert torch.equal(residual.grad, torch.full_like(x, 2.0))
    torch.manual_seed(3)
    torch.testing.assert_close(x.grad, 2 * keep_mask(0.25, x.shape) / 0.75)


def test_relu_keeps_what_is_positive_and_not_dropped():
    dropout, x = Dropout(0.25), torch.randn(50, 40, requires_grad=True)
    torch.manual_seed(3)
    kept, factor = dropout.relu(x * 1)  # it changes its argument
    assert factor == pytest.approx(4 / 3)
    torch.manual_seed(3)
    assert torch.equal(kept, x.detach().relu() * keep_mask(0.25, x.shape))
    kept.backward(torch.full_like(x, 2.0))
    assert torch.equal(x.grad, 2.0 * (kept > 0))


def test_a_mask_depends_on_the_seed_and_its_shape_alone():
    torch.manual_seed(5)
    first = keep_mask(0.1, (300, 7)).clone()
    keep_mask(0.1, (LEAST_ROW,))  # of a longer row
    keep_mask(0.4, (300, 7))
    torch.manual_seed(5)
    assert torch.equal(keep_mask(0.1, (300, 7)), first)
    assert not torch.equal(keep_mask(0.1, (300, 7)), first), "the next use has a window of its own"


@pytest.mark.parametrize("count", [1, LEAST_ROW // 2, LEAST_ROW // 2 + 1, 2 * LEAST_ROW])
def test_windows_of_any_size_have_many_places(count):
    windows = {keep_mask(0.5, (count,)).storage_offset() for _ in range(20)}
    assert len(windows) >= 19


def test_masks_of_two_uses_are_independent():
    torch.manual_seed(1)
    one, other = keep_mask(0.5, (400_000,)), keep_mask(0.5, (400_000,))
    assert (one * other).mean().item() == pytest.approx(0.25, abs=0.005)


def test_half_precision_stays_what_it_is():
    x = torch.ones(100, dtype=torch.bfloat16)
    assert Dropout(0.5)(x).dtype == torch.bfloat16
    assert Dropout(0.5).add(torch.ones(100), x).dtype == torch.float32


def test_masks_that_would_need_huge_rows_are_drawn_by_torch(monkeypatch):
    monkeypatch.setattr(dropout, "MOST_ELEMENTS", 1000)
    monkeypatch.setattr(dropout, "keep_mask", None)  # which would not be callable
    torch.manual_seed(1)
    x = torch.ones(100, 200, requires_grad=True)
    dropped = Dropout(0.25)(x)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    rectified, factor = Dropout(0.25).relu(torch.ones(100, 200))
    assert (rectified * factor).mean().item() == pytest.approx(1.0, abs=0.03)


def test_a_first_use_without_gradients_leaves_a_row_to_train_with():
    dropout._random_row.cache_clear()
    with torch.inference_mode():
        Dropout(0.125)(torch.ones(10))
    x = torch.ones(10, requires_grad=True)
    Dropout(0.125)(x).sum().backward()
    assert x.grad is not None
