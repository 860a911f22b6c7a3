"""The outer optimizer: it moves the common weights by what the islands have learned.

The mean of all islands' changes takes the place of a gradient, and SGD with momentum that of the
optimizer: SlowMo (Wang et al. 2020) for `sync.mode` local, DiLoCo (Douillard et al. 2023), with
Nesterov's momentum, for diloco. Islands keep the moments of their own optimizers.

A change is sent fragment by fragment while the islands compute on (`distributed/fragments.py`).
When the mean arrives, an island takes the common weights and adds what it has learned since its
change has departed (`sync.mixing`). Streaming DiLoCo (Douillard et al. 2025) mixes both with fixed
shares instead, by which a part of that work is lost.
"""

import logging
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.futures import Future

from dragoman.config import SyncSettings
from dragoman.distributed.fragments import FragmentSchedule, cut
from dragoman.sync.averaging import MeanChange, average_changes
from dragoman.sync.courier import Courier
from dragoman.sync.islands import Islands

logger = logging.getLogger(__name__)

Tensors = Mapping[str, Tensor]


class _Travelling(NamedTuple):
    """A fragment on its way."""

    departed: list[Tensor]
    """This island's weights when it set out."""
    mean: "Future[MeanChange]"


class OuterState(NamedTuple):
    """All that a checkpoint needs, by the names of weights."""

    momentum: dict[str, Tensor]
    mean: dict[str, Tensor]
    """Of fragments on their way: the mean change of all islands, which is about to be applied."""
    departed: dict[str, Tensor]
    """Of the same, this island's weights when they set out."""


class OuterOptimizer:
    """Lives as long as the run; holds the common weights and the momentum."""

    def __init__(self, model: nn.Module, settings: SyncSettings, islands: Islands) -> None:
        """The model's weights must be the same on all ranks."""
        assert settings.outer_rate is not None
        assert settings.outer_momentum is not None
        assert settings.mixing is not None
        assert settings.wire is not None
        self._rate, self._momentum = settings.outer_rate, settings.outer_momentum
        self._mixing, self._wire = settings.mixing, settings.wire
        self._is_nesterov = settings.mode == "diloco"
        self._islands = islands
        self._schedule = FragmentSchedule.of(settings)
        self._parameters = dict(model.named_parameters())
        self._common = [weight.detach().clone() for weight in self._parameters.values()]
        self._velocity = [torch.zeros_like(weight) for weight in self._common]
        sizes = [weight.numel() for weight in self._common]
        self._members = cut(sizes, self._schedule.fragments)
        self._travelling: dict[int, _Travelling] = {}
        self._device = self._common[0].device
        self._courier = Courier(self._device, "averaging")

    def after_step(self, step: int, is_last: bool = False) -> None:
        """Sends what departs after this step, and applies what has to be there, waiting for it.

        After the last step all islands hold the common weights. Collective: every rank must call.
        """
        if is_last:
            self.drain()
            departing = arriving = [*range(self._schedule.fragments)]
        else:
            departing, arriving = self._schedule.departing(step), self._schedule.arriving(step)
        for fragment in departing:
            self._depart(fragment)
        for fragment in arriving:
            if fragment in self._travelling:  # not in the first steps
                self._arrive(fragment)

    def drain(self) -> None:
        """Applies all that is on its way. Collective: every rank must call."""
        for fragment in [*self._travelling]:  # in the order of their departures
            self._arrive(fragment)

    def common(self) -> dict[str, Tensor]:
        """Returns the common weights, which are the same on all ranks after every step."""
        return dict(zip(self._parameters, self._common, strict=True))

    def is_common(self) -> bool:
        """Returns whether this island holds the common weights, and nothing is on its way."""
        return not self._travelling and all(
            torch.equal(own, common)
            for own, common in zip(self._parameters.values(), self._common, strict=True)
        )

    def wait(self) -> None:
        """Waits until everything that has departed is there; applies nothing before its time."""
        for travelling in self._travelling.values():
            travelling.mean.wait()

    def state(self) -> OuterState:
        """Returns what goes on from here; waits until everything that has departed is there."""
        names = [*self._parameters]
        mean: dict[str, Tensor] = {}
        departed: dict[str, Tensor] = {}
        for fragment, travelling in self._travelling.items():
            arrived = travelling.mean.wait().tensors
            for number, place in enumerate(self._members[fragment] if arrived else []):
                assert arrived
                mean[names[place]] = arrived[number]
                departed[names[place]] = travelling.departed[number]
        return OuterState(dict(zip(names, self._velocity, strict=True)), mean, departed)

    @torch.no_grad()
    def load(self, weights: Tensors, momentum: Tensors, mean: Tensors, departed: Tensors) -> None:
        """Goes on from common `weights` and what `state` returned; without momentum if empty."""
        self.wait()  # for what is given up
        self._travelling.clear()
        for place, name in enumerate(self._parameters):
            self._common[place].copy_(weights[name])
            if name in momentum:
                self._velocity[place].copy_(momentum[name])
            else:
                self._velocity[place].zero_()
        names = [*self._parameters]
        for fragment, members in enumerate(self._members):
            own = [names[place] for place in members]
            if own and all(name in mean and name in departed for name in own):
                arrived: Future[MeanChange] = Future()
                arrived.set_result(MeanChange([mean[name].to(self._device) for name in own], []))
                self._travelling[fragment] = _Travelling(
                    [departed[name].to(self._device) for name in own], arrived
                )

    def close(self) -> bool:
        """Returns whether nothing is on its way any more, as at every end but that of a failure."""
        return self._courier.close()

    @torch.no_grad()
    def _depart(self, fragment: int) -> None:
        departed = [weight.clone() for weight in self._weights(fragment)]
        common = [self._common[place] for place in self._members[fragment]]
        # The way back, as a gradient points: common weights minus this island's.
        changes = [*torch._foreach_sub(common, departed)] if departed else []

        def work() -> MeanChange:
            mean = average_changes(changes, self._islands, self._wire)
            if self._device.type == "cuda":
                torch.cuda.current_stream(self._device).synchronize()
            return mean

        self._travelling[fragment] = _Travelling(departed, self._courier.begin(work))

    @torch.no_grad()
    def _arrive(self, fragment: int) -> None:
        departed, travelling = self._travelling.pop(fragment)
        change = travelling.wait()
        if change.tensors is None:
            # Losses of these islands are not finite either, which is acted upon elsewhere.
            if change.not_finite:
                logger.warning(f"weights of island(s) {change.not_finite} are not finite")
            return
        if not departed:
            return
        places = self._members[fragment]
        common, velocity, weights = (
            [self._common[place] for place in places],
            [self._velocity[place] for place in places],
            self._weights(fragment),
        )
        torch._foreach_mul_(velocity, self._momentum)
        torch._foreach_add_(velocity, change.tensors)
        step = velocity
        if self._is_nesterov:
            step = [*torch._foreach_add(change.tensors, velocity, alpha=self._momentum)]
        torch._foreach_add_(common, step, alpha=-self._rate)
        torch._foreach_sub_(weights, departed)
        torch._foreach_mul_(weights, self._mixing)
        torch._foreach_add_(weights, common)

    def _weights(self, fragment: int) -> list[Tensor]:
        weights = [*self._parameters.values()]
        return [weights[place].detach() for place in self._members[fragment]]
