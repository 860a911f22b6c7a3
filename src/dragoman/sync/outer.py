"""The outer optimizer: it moves the common weights by what the islands have learned in a window.

The mean of all islands' changes takes the place of a gradient, and SGD with momentum that of the
optimizer: SlowMo (Wang et al. 2020) for `sync.mode` local, DiLoCo (Douillard et al. 2023), with
Nesterov's momentum, for diloco. Islands keep the moments of their own optimizers.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from dragoman.config import SyncSettings
from dragoman.sync.averaging import average_differences
from dragoman.sync.islands import Islands


class OuterOptimizer:
    """Lives as long as the run; holds the last common weights and the momentum."""

    def __init__(self, model: nn.Module, settings: SyncSettings, islands: Islands) -> None:
        """The model's weights must be the same on all ranks."""
        assert settings.outer_rate is not None
        assert settings.outer_momentum is not None
        self._rate, self._momentum = settings.outer_rate, settings.outer_momentum
        self._is_nesterov = settings.mode == "diloco"
        self._islands = islands
        self._parameters = dict(model.named_parameters())
        self._common = [weight.detach().clone() for weight in self._parameters.values()]
        self._velocity = [torch.zeros_like(weight) for weight in self._common]

    @torch.no_grad()
    def synchronize(self) -> None:
        """Makes the weights common again. Collective: every rank must call."""
        weights = [weight.detach() for weight in self._parameters.values()]
        # The way back, as a gradient points: common weights minus this island's.
        changes = [*torch._foreach_sub(self._common, weights)]
        average_differences(changes, self._islands)
        torch._foreach_mul_(self._velocity, self._momentum)
        torch._foreach_add_(self._velocity, changes)
        if self._is_nesterov:
            torch._foreach_add_(changes, self._velocity, alpha=self._momentum)
        else:
            changes = self._velocity
        torch._foreach_add_(self._common, changes, alpha=-self._rate)
        torch._foreach_copy_(weights, self._common)

    def tensors(self) -> dict[str, Tensor]:
        """Returns the momentum by the names of the weights; it stays as it is until the next
        synchronization."""
        return dict(zip(self._parameters, self._velocity, strict=True))

    @torch.no_grad()
    def load(self, velocity: Mapping[str, Tensor]) -> None:
        """Begins a window with the model's weights, which are common; without momentum if empty."""
        for place, (name, weight) in enumerate(self._parameters.items()):
            self._common[place].copy_(weight)
            if name in velocity:
                self._velocity[place].copy_(velocity[name])
            else:
                self._velocity[place].zero_()
