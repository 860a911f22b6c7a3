"""The optimizer's state as named tensors and back, so that checkpoints need no pickle."""

import torch
from torch import Tensor, nn

_SEPARATOR = "|"


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Each parameter's state under `name|key`."""
    return {
        f"{name}{_SEPARATOR}{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    parameters = dict(model.named_parameters())
    for full_name, value in tensors.items():
        name, _, key = full_name.rpartition(_SEPARATOR)
        parameter = parameters[name]
        # Adam counts steps on the host unless it runs fused on the device.
        optimizer.state[parameter][key] = value.to(parameter.device)
