"""Tensors of a run as checkpoints hold them: whole, and by name, so that they need no pickle."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor, nn

from dragoman.config import ModelSettings
from dragoman.model.loss import Objective
from dragoman.model.transformer import without_weights

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

STATE_SEPARATOR = "|"
"""Between the name of a parameter and the key of an optimizer's state of it."""


def is_sharded(tensor: Tensor) -> TypeGuard["DTensor"]:
    # Importing the class takes a second, and most runs have no such tensor.
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """Returns the tensor, or all of one that is sharded: then every rank must call."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def whole_tensors(tensors: Mapping[str, Tensor], kept: bool) -> dict[str, Tensor]:
    """Returns all of each tensor where they are `kept`; other ranks only take part.

    Collective where tensors are sharded: every rank must call.
    """
    gathered = {}
    for name, tensor in tensors.items():
        complete = whole(tensor)
        if kept:
            # Not on the device, which may be too small for all of them.
            gathered[name] = complete.cpu() if is_sharded(tensor) else complete
    return gathered


def whole_objective(
    objective: Objective,
    averaged: Mapping[str, Tensor] | None,
    settings: ModelSettings,
    vocabulary: int,
) -> Objective:
    """Returns an objective that translates, with which ranks may make different numbers of passes.

    It is another one where the weights are sharded, or where other weights, `averaged`, translate.

    Collective where weights are sharded: every rank must call.
    """
    weights = averaged or objective.model.state_dict()
    if averaged is None and not any(is_sharded(weight) for weight in weights.values()):
        return objective
    model = without_weights(settings, vocabulary)
    model.load_state_dict({name: whole(weight) for name, weight in weights.items()}, assign=True)
    return Objective(model, objective.label_smoothing)


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    model.load_state_dict(
        {name: placed_like(parameters[name], value) for name, value in tensors.items()}
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Returns the state of each of its parameters under `name|key`."""
    return {
        f"{name}{STATE_SEPARATOR}{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the weights that a checkpoint of this model holds."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Loads what concerns the optimizer's own parameters."""
    parameters = dict(model.named_parameters())
    own = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for full_name, value in tensors.items():
        name, _, key = full_name.rpartition(STATE_SEPARATOR)
        parameter = parameters[name]
        if id(parameter) in own:
            # Adam counts steps on the host unless it runs fused on the device.
            optimizer.state[parameter][key] = placed_like(parameter, value)


def placed_like(parameter: Tensor, value: Tensor) -> Tensor:
    """Returns the value on the parameter's device; this rank's part where that is sharded."""
    value = value.to(parameter.device)
    if not is_sharded(parameter) or value.shape != parameter.shape:
        return value
    from torch.distributed.tensor import distribute_tensor  # noqa: PLC0415 - as above

    # Every rank has the whole value, so that nothing has to be sent.
    return distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)
