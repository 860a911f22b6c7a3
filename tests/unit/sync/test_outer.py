import pytest
import torch
from torch import nn

from dragoman.config import SyncSettings
from dragoman.sync import outer
from dragoman.sync.islands import Islands
from dragoman.sync.outer import OuterOptimizer

TWO = Islands(of_rank=(0, 1), own=0)
ALONE = Islands(of_rank=(0,), own=0)


def model(*values):
    layer = nn.Linear(len(values), 1, bias=False)
    layer.weight.data = torch.tensor([values])
    return layer


def settings(mode="local", rate=1.0, momentum=0.0):
    return SyncSettings(mode=mode, outer_rate=rate, outer_momentum=momentum)


def move(layer, by):
    with torch.no_grad():
        layer.weight += by


def test_at_rate_1_without_momentum_the_weights_are_averaged(monkeypatch):
    """The other island has moved by 3, this one by 1."""

    def average(differences, islands):
        for difference in differences:
            difference.add_(-3.0).div_(2)

    monkeypatch.setattr(outer, "average_differences", average)
    layer = model(1.0, 2.0)
    optimizer = OuterOptimizer(layer, settings(), TWO)
    move(layer, 1.0)
    optimizer.synchronize()
    assert layer.weight.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(("mode", "nesterov"), [("local", False), ("diloco", True)])
def test_the_common_weights_move_as_torchs_sgd_moves_them(mode, nesterov):
    layer, reference = model(1.0, -1.0), model(1.0, -1.0)
    optimizer = OuterOptimizer(layer, settings(mode, rate=0.7, momentum=0.9), ALONE)
    expected = torch.optim.SGD(reference.parameters(), lr=0.7, momentum=0.9, nesterov=nesterov)
    for change in (0.5, -0.2, 0.3):
        move(layer, change)
        optimizer.synchronize()
        reference.weight.grad = torch.full_like(reference.weight, -change)
        expected.step()
        torch.testing.assert_close(layer.weight, reference.weight)


def test_it_goes_on_from_what_was_saved_as_if_nothing_had_happened():
    layers = model(1.0), model(5.0)
    first, second = (OuterOptimizer(layer, settings("diloco", 0.7, 0.9), ALONE) for layer in layers)
    move(layers[0], 1.0)
    first.synchronize()
    layers[1].load_state_dict(layers[0].state_dict())
    second.load({name: tensor.clone() for name, tensor in first.tensors().items()})
    for layer, optimizer in zip(layers, (first, second), strict=True):
        move(layer, 0.25)
        optimizer.synchronize()
    assert layers[0].weight.tolist() == layers[1].weight.tolist()


def test_without_a_momentum_to_load_it_starts_over():
    layer = model(1.0)
    optimizer = OuterOptimizer(layer, settings("local", 1.0, 0.5), ALONE)
    move(layer, 1.0)
    optimizer.synchronize()
    layer.weight.data.fill_(7.0)
    optimizer.load({})
    optimizer.synchronize()
    assert layer.weight.tolist() == [[7.0]]
