import torch
from torch import nn

from dragoman.training.tensors import (
    load_optimizer_tensors,
    load_weights,
    optimizer_shapes,
    optimizer_tensors,
    shapes_of,
    whole_tensors,
)


def trained(seed):
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_weights_and_adam_survive_as_named_tensors():
    model, optimizer = trained(1)
    other, other_optimizer = trained(2)
    load_weights(other, {name: value.clone() for name, value in model.state_dict().items()})
    load_optimizer_tensors(other_optimizer, other, optimizer_tensors(optimizer, model))
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert all(
            torch.equal(value, other_optimizer.state[two][key])
            for key, value in optimizer.state[one].items()
        )


def test_the_shapes_of_adam_follow_from_those_of_the_weights():
    model, optimizer = trained(1)
    found = {
        name: tuple(value.shape) for name, value in optimizer_tensors(optimizer, model).items()
    }
    assert found == optimizer_shapes(shapes_of(model))


def test_a_rank_that_keeps_no_copy_gets_nothing():
    tensors = {"a": torch.ones(2)}
    assert whole_tensors(tensors, kept=False) == {}
    assert whole_tensors(tensors, kept=True)["a"] is tensors["a"]
