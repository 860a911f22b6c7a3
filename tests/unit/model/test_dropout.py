import pytest
import torch

from dragoman.model.dropout import Dropout


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
