import pytest
import torch
from torch import nn

from dragoman.config import SyncSettings
from dragoman.sync import outer
from dragoman.sync.averaging import MeanChange
from dragoman.sync.islands import Islands
from dragoman.sync.outer import OuterOptimizer

TWO = Islands(of_rank=(0, 1), own=0)
ALONE = Islands(of_rank=(0,), own=0)


def model(*values):
    layer = nn.Linear(len(values), 1, bias=False)
    layer.weight.data = torch.tensor([values])
    return layer


def two_tensors(first, second):
    layers = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    for layer, value in zip(layers, (first, second), strict=True):
        layer.weight.data.fill_(value)
    return layers


def settings(mode="local", rate=1.0, momentum=0.0, **others):
    burst = {"local_steps": 2, "fragments": 1}
    return SyncSettings(mode=mode, outer_rate=rate, outer_momentum=momentum, **(burst | others))


def move(layer, by):
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(by)


@pytest.fixture
def other_island(monkeypatch):
    """Another island, which has moved by 3 whenever changes are averaged."""

    def average(changes, islands, wire):
        return MeanChange([(change - 3.0) / 2 for change in changes], [])

    monkeypatch.setattr(outer, "average_changes", average)


def test_at_rate_1_without_momentum_the_weights_are_averaged(other_island):
    layer = model(1.0, 2.0)
    optimizer = OuterOptimizer(layer, settings(), TWO)
    move(layer, 1.0)
    optimizer.after_step(1)
    assert layer.weight.tolist() == [[2.0, 3.0]]  # on its own, within the window
    optimizer.after_step(2)
    assert layer.weight.tolist() == [[3.0, 4.0]]
    assert optimizer.common()["weight"].tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(("mode", "nesterov"), [("local", False), ("diloco", True)])
def test_the_common_weights_move_as_torchs_sgd_moves_them(mode, nesterov):
    layer, reference = model(1.0, -1.0), model(1.0, -1.0)
    optimizer = OuterOptimizer(layer, settings(mode, rate=0.7, momentum=0.9), ALONE)
    expected = torch.optim.SGD(reference.parameters(), lr=0.7, momentum=0.9, nesterov=nesterov)
    for step, change in enumerate((0.5, -0.2, 0.3), start=1):
        move(layer, change)
        optimizer.after_step(2 * step)
        reference.weight.grad = torch.full_like(reference.weight, -change)
        expected.step()
        torch.testing.assert_close(layer.weight, reference.weight)


@pytest.mark.parametrize(("mixing", "kept"), [(1.0, 0.5), (0.5, 0.25), (0.0, 0.0)])
def test_what_is_learned_while_a_fragment_travels_is_added_to_the_common_weights(
    mixing, kept, other_island
):
    layer = model(1.0)
    in_time = settings(local_steps=2, fragments=1, delay=1, mixing=mixing)
    optimizer = OuterOptimizer(layer, in_time, TWO)
    move(layer, 1.0)
    optimizer.after_step(2)  # departs
    move(layer, 0.5)
    assert layer.weight.item() == 2.5
    optimizer.after_step(3)  # arrives: the mean of 1 and 3
    assert optimizer.common()["weight"].item() == 3.0
    assert layer.weight.item() == 3.0 + kept


def test_fragments_become_common_one_after_the_other(other_island):
    layers = two_tensors(0.0, 10.0)
    optimizer = OuterOptimizer(layers, settings(local_steps=4, fragments=2, delay=0), TWO)
    common = optimizer.common()
    move(layers, 1.0)
    optimizer.after_step(2)
    assert [weight.item() for weight in common.values()] == [2.0, 10.0]
    optimizer.after_step(4)
    assert [weight.item() for weight in common.values()] == [2.0, 12.0]


def test_after_the_last_step_nothing_is_on_its_way_and_all_weights_are_common(other_island):
    layers = two_tensors(0.0, 10.0)
    optimizer = OuterOptimizer(layers, settings(local_steps=4, fragments=2, delay=2), TWO)
    move(layers, 1.0)
    optimizer.after_step(2)
    move(layers, 1.0)
    optimizer.after_step(3, is_last=True)
    # The first: 2 with what has arrived, 3 with what was learned since; then the mean of 1 and 3.
    # The second: the mean of 2 and 3.
    assert [weight.item() for weight in layers.parameters()] == [4.0, 12.5]
    assert [weight.item() for weight in optimizer.common().values()] == [4.0, 12.5]
    assert optimizer.state().mean == {}


def test_it_knows_whether_its_weights_are_the_common_ones(other_island):
    layer = model(1.0)
    optimizer = OuterOptimizer(layer, settings(local_steps=4, fragments=1, delay=2), TWO)
    assert optimizer.is_common()
    move(layer, by=1.0)
    assert not optimizer.is_common()
    optimizer.after_step(4)  # now it is on its way
    optimizer.wait()
    layer.weight.data.copy_(optimizer.common()["weight"])
    assert not optimizer.is_common(), "what has arrived is applied in its time, and not before"
    optimizer.after_step(5, is_last=True)
    assert optimizer.is_common()
    optimizer.close()


def test_it_goes_on_from_what_was_saved_as_if_nothing_had_happened(other_island):
    """Also with a fragment on its way."""
    layers = model(1.0), model(5.0)
    in_time = settings("diloco", 0.7, 0.9, delay=1)
    first, second = (OuterOptimizer(layer, in_time, TWO) for layer in layers)
    for step in (1, 2, 3, 4):
        move(layers[0], 1.0)
        first.after_step(step)
    layers[1].load_state_dict(layers[0].state_dict())
    state = first.state()
    assert [*state.mean] == [*state.departed] == ["weight"]
    copies = [{name: t.clone() for name, t in each.items()} for each in (first.common(), *state)]
    second.load(*copies)
    for step in (5, 6, 7):
        for layer, optimizer in zip(layers, (first, second), strict=True):
            move(layer, 0.25)
            optimizer.after_step(step)
    assert layers[0].weight.tolist() == layers[1].weight.tolist()
    assert first.common()["weight"].tolist() == second.common()["weight"].tolist()


def test_without_a_momentum_to_load_it_starts_over_and_forgets_what_was_on_its_way():
    layer = model(1.0)
    optimizer = OuterOptimizer(layer, settings("local", 1.0, 0.5, delay=1), ALONE)
    move(layer, 1.0)
    optimizer.after_step(2)
    layer.weight.data.fill_(7.0)
    optimizer.load({"weight": torch.tensor([[7.0]])}, {}, {}, {})
    optimizer.after_step(3)
    optimizer.after_step(4)
    optimizer.after_step(5)
    assert layer.weight.tolist() == [[7.0]]


def test_values_that_are_not_finite_change_no_common_weight(monkeypatch, caplog):
    monkeypatch.setattr(outer, "average_changes", lambda *_: MeanChange(None, [1]))
    layer = model(1.0)
    optimizer = OuterOptimizer(layer, settings(), TWO)
    move(layer, 1.0)
    optimizer.after_step(2)
    assert optimizer.common()["weight"].item() == 1.0
    assert "island(s) [1] are not finite" in caplog.text
