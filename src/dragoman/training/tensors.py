"""Tensors of a run as checkpoints hold them: whole, and by name, so that they need no pickle."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor, nn

from dragoman.checkpoints.checkpoint import Shapes
from dragoman.config import ModelSettings
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

_SEPARATOR = "|"


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


@contextmanager
def whole_objective(
    objective: Objective, settings: ModelSettings, vocabulary: int, device: torch.device
) -> Iterator[Objective]:
    """Yields an objective with which ranks may make different numbers of passes.

    Where the weights are sharded, it is a copy.

    Collective where weights are sharded: every rank must call.
    """
    sharded = dict(objective.model.named_parameters())
    if not any(is_sharded(parameter) for parameter in sharded.values()):
        yield objective
        return
    with torch.device("meta"):  # without memory, and without initial weights to draw
        model = Transformer(settings, vocabulary)
    model.to_empty(device=device)
    for name, parameter in model.named_parameters():
        parameter.data.copy_(whole(sharded[name].detach()))
    yield Objective(model, objective.label_smoothing)


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    model.load_state_dict(
        {name: _placed_like(parameters[name], value) for name, value in tensors.items()}
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Returns each parameter's state under `name|key`."""
    return {
        f"{name}{_SEPARATOR}{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the weights that a checkpoint of this model holds."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def optimizer_shapes(weights: Shapes) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of Adam's state, once it has made an update."""
    keys = ("exp_avg", "exp_avg_sq", "step")
    return {
        f"{name}{_SEPARATOR}{key}": () if key == "step" else shape
        for name, shape in weights.items()
        for key in keys
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    parameters = dict(model.named_parameters())
    for full_name, value in tensors.items():
        name, _, key = full_name.rpartition(_SEPARATOR)
        parameter = parameters[name]
        # Adam counts steps on the host unless it runs fused on the device.
        optimizer.state[parameter][key] = _placed_like(parameter, value)


def _placed_like(parameter: Tensor, value: Tensor) -> Tensor:
    """Returns the value on the parameter's device; this rank's part where that is sharded."""
    value = value.to(parameter.device)
    if not is_sharded(parameter) or value.shape != parameter.shape:
        return value
    from torch.distributed.tensor import distribute_tensor  # noqa: PLC0415 - as above

    # Every rank has the whole value, so that nothing has to be sent.
    return distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)
