import torch
from torch import nn

from dragoman.config import ModelSettings
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.training.tensors import (
    load_optimizer_tensors,
    load_weights,
    optimizer_tensors,
    whole_objective,
    whole_tensors,
)

TINY = ModelSettings(preset="transformer-tiny", width=32, heads=4, filter=48)


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


def test_an_optimizer_takes_the_states_of_its_own_parameters_alone():
    model, whole = trained(1)
    part = torch.optim.AdamW([model.bias])
    load_optimizer_tensors(part, model, optimizer_tensors(whole, model))
    assert list(part.state) == [model.bias]
    assert optimizer_tensors(part, model).keys() == {
        "bias|exp_avg",
        "bias|exp_avg_sq",
        "bias|step",
    }


def test_a_rank_that_keeps_no_copy_gets_nothing():
    tensors = {"a": torch.ones(2)}
    assert whole_tensors(tensors, kept=False) == {}
    assert whole_tensors(tensors, kept=True)["a"] is tensors["a"]


def test_averaged_weights_translate_without_being_copied_or_touching_those_that_train():
    objective = Objective(Transformer(TINY, 50), 0.1)
    assert whole_objective(objective, None, TINY, 50) is objective
    before = {name: value.clone() for name, value in objective.model.state_dict().items()}
    averaged = {name: value + 1 for name, value in before.items()}
    other = whole_objective(objective, averaged, TINY, 50)
    assert other.label_smoothing == objective.label_smoothing
    for name, value in other.model.state_dict().items():
        assert value.data_ptr() == averaged[name].data_ptr()
        assert torch.equal(objective.model.state_dict()[name], before[name])
