"""The optimizer of a run: it changes the weights, and keeps the average of them that translates.

The weights that train are not always those that translate. Schedule-Free computes gradients at
weights y, between weights z that take the steps and x, the average of all z, and x translates. With
`optimizer.average_decay`, a moving average of the weights translates. A checkpoint's model is what
translates, so that nobody who loads it needs to know; where that is an average, the weights that
train are kept with the optimizer's state. Neither evaluating nor saving changes a weight.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from schedulefree import AdamWScheduleFree
from torch import Tensor, nn

from dragoman.checkpoints.checkpoint import Shapes
from dragoman.config import OptimizerSettings
from dragoman.distributed.gemm import product
from dragoman.training.tensors import (
    STATE_SEPARATOR,
    is_sharded,
    load_optimizer_tensors,
    load_weights,
    optimizer_tensors,
    placed_like,
)

Parameters = Mapping[str, nn.Parameter]
Counts = Mapping[str, float]
"""What an optimizer counts apart from its tensors, as a checkpoint's state keeps it."""

TRAINED = "weight"
"""The key of the weights that train, where others translate."""
SCHEDULE_FREE_COUNTS = ("k", "weight_sum", "lr_max")
"""Of the package's parameter groups: updates, the sum of their shares in x, the highest rate."""
AVERAGE_COUNTS = ("updates",)
_ADAM = ("exp_avg", "exp_avg_sq", "step")
_MUON_MOMENTUM = 0.95


class Optimizer:
    """Lives as long as the run; holds all that changes with an update, except the weights."""

    def __init__(
        self, model: nn.Module, settings: OptimizerSettings, precision: str = "fp32"
    ) -> None:
        self._model, self.settings = model, settings
        parameters = dict(model.named_parameters())
        self.parts = _MAKERS[settings.kind](parameters, settings, precision)
        """Of torch's kind, each with parameters of its own; to be stepped one after the other."""
        self._updates = 0
        self._average: dict[str, Tensor] = {}
        if settings.average_decay:
            self._average = {name: weight.detach().clone() for name, weight in parameters.items()}

    def set_rate(self, learning_rate: float) -> None:
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = learning_rate * group.get("rate_factor", 1.0)

    @torch.no_grad()
    def update_average(self) -> None:
        """Adds the weights to their moving average, if there is one; to be called after an update.

        Early in a run the average is of fewer updates, or the initial weights would stay in it.
        """
        if not self._average:
            return
        self._updates += 1
        decay = min(self.settings.average_decay, (1 + self._updates) / (10 + self._updates))
        weights = [_local(weight) for weight in self._model.parameters()]
        torch._foreach_lerp_([*map(_local, self._average.values())], weights, 1 - decay)

    def averaged(self) -> dict[str, Tensor] | None:
        """Returns the weights that translate, by name; None: the model's own do."""
        if self._average:
            return self._average
        if self.settings.kind != "schedule-free" or not self._is_under_way():
            return None
        # As the package's eval() does, but not in place: going back would round, and a run that
        # is evaluated or saved more often would get other weights.
        back = 1 - 1 / self.settings.beta1
        return {
            name: weight.detach().lerp(self._state_of(weight)["z"], back)
            for name, weight in self._model.named_parameters()
        }

    def compared(self) -> dict[str, Tensor]:
        """Returns the tensors that decide what translates, equal on all ranks with replicas."""
        tensors: dict[str, Tensor] = {}
        for name, weight in self._model.named_parameters():
            tensors[name] = weight
            if self._average:
                tensors[f"{name}{STATE_SEPARATOR}average"] = self._average[name]
            elif "z" in self._state_of(weight):
                tensors[f"{name}{STATE_SEPARATOR}z"] = self._state_of(weight)["z"]
        return tensors

    def tensors(self, with_weights: bool = False) -> dict[str, Tensor]:
        """Returns what a checkpoint holds beside the weights that translate; empty before the
        first update.

        `with_weights`: others than those that are held here translate, so those that train are
        among them.
        """
        if not self._is_under_way():
            return {}
        tensors: dict[str, Tensor] = {}
        for part in self.parts:
            tensors |= optimizer_tensors(part, self._model)
        if self.settings.averages or with_weights:
            for name, weight in self._model.named_parameters():
                tensors[f"{name}{STATE_SEPARATOR}{TRAINED}"] = weight.detach()
        return tensors

    @property
    def counts(self) -> dict[str, float]:
        """What a checkpoint's state holds; empty before the first update, and where tensors are
        all there is."""
        if not self._is_under_way():
            return {}
        if self.settings.kind == "schedule-free":
            group = self.parts[0].param_groups[0]  # all groups count the same
            return {key: group[key] for key in SCHEDULE_FREE_COUNTS}
        return dict.fromkeys(AVERAGE_COUNTS, self._updates) if self._average else {}

    def load(
        self, weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor], counts: Counts
    ) -> None:
        """Loads a checkpoint into the model and the optimizer: its weights, `tensors`, `counts`.

        Without tensors and counts, a run begins with these weights.
        """
        self.clear()
        of_parts = dict(tensors)
        trained = {
            name: of_parts.pop(f"{name}{STATE_SEPARATOR}{TRAINED}", weight)
            for name, weight in weights.items()
        }
        load_weights(self._model, trained)
        if self._average:  # in the order of the parameters, whatever that of the file
            self._average = {
                name: placed_like(parameter, weights[name]).clone()
                for name, parameter in self._model.named_parameters()
            }
        for part in self.parts:
            load_optimizer_tensors(part, self._model, of_parts)
        if self.settings.kind == "schedule-free":
            for group in self.parts[0].param_groups:
                group.update(counts)
        else:
            self._updates = int(counts.get("updates", 0))

    def clear(self) -> None:
        """Forgets everything but the weights and their average."""
        self._updates = 0
        for part in self.parts:
            part.state.clear()
            if isinstance(part, AdamWScheduleFree):
                for group in part.param_groups:
                    group.update({key: part.defaults[key] for key in SCHEDULE_FREE_COUNTS})

    def _is_under_way(self) -> bool:
        return any(state for part in self.parts for state in part.state.values())

    def _state_of(self, weight: nn.Parameter) -> dict[str, Tensor]:
        return next((part.state[weight] for part in self.parts if weight in part.state), {})


def count_keys(settings: OptimizerSettings) -> tuple[str, ...]:
    """Returns the keys of `Optimizer.counts`, once there has been an update."""
    if settings.kind == "schedule-free":
        return SCHEDULE_FREE_COUNTS
    return AVERAGE_COUNTS if settings.average_decay else ()


def optimizer_shapes(
    weights: Shapes, settings: OptimizerSettings, with_weights: bool = False
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of `Optimizer.tensors`, once there has been an update."""
    keys: dict[str, Callable[[str, int], tuple[str, ...]]] = {
        "adamw": lambda name, dimensions: _ADAM,
        "schedule-free": lambda name, dimensions: ("exp_avg_sq", "z"),
        "muon": lambda name, dimensions: (
            ("momentum_buffer",) if is_for_muon(name, dimensions) else _ADAM
        ),
    }
    trained = (TRAINED,) if settings.averages or with_weights else ()
    return {
        f"{name}{STATE_SEPARATOR}{key}": () if key == "step" else shape
        for name, shape in weights.items()
        for key in (*keys[settings.kind](name, len(shape)), *trained)
    }


def is_for_muon(name: str, dimensions: int) -> bool:
    """Returns whether Muon changes this parameter: a matrix between two hidden layers.

    The embedding is none: its rows are looked up one by one, and it is the output projection too.
    """
    return dimensions == 2 and not name.startswith("embedding.")


def _adamw(
    parameters: Parameters, settings: OptimizerSettings, precision: str
) -> list[torch.optim.Optimizer]:
    return [
        torch.optim.AdamW(
            _decayed_and_not(parameters, settings),
            betas=(settings.beta1, settings.beta2),
            eps=settings.epsilon,
            fused=True,
        )
    ]


def _schedule_free(
    parameters: Parameters, settings: OptimizerSettings, precision: str
) -> list[torch.optim.Optimizer]:
    optimizer = AdamWScheduleFree(
        _decayed_and_not(parameters, settings),
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        warmup_steps=0,  # the schedule warms up, so that rates are recorded as they are
    )
    optimizer.train()  # and never eval(), see `averaged`
    return [optimizer]


def _muon(
    parameters: Parameters, settings: OptimizerSettings, precision: str
) -> list[torch.optim.Optimizer]:
    matrices = {name: p for name, p in parameters.items() if is_for_muon(name, p.ndim)}
    others = {name: p for name, p in parameters.items() if name not in matrices}
    muon = Muon(
        [{"params": [*matrices.values()], "rate_factor": settings.muon_rate_factor}],
        dtype=torch.bfloat16 if precision == "bf16" else torch.float32,
        weight_decay=settings.weight_decay,
        momentum=_MUON_MOMENTUM,
        adjust_lr_fn="match_rms_adamw",  # so that AdamW's rates hold for both
    )
    return [muon, *_adamw(others, settings, precision)]


_MAKERS: dict[str, Callable[[Parameters, OptimizerSettings, str], list[torch.optim.Optimizer]]] = {
    "adamw": _adamw,
    "schedule-free": _schedule_free,
    "muon": _muon,
}


def _decayed_and_not(parameters: Parameters, settings: OptimizerSettings) -> list[dict[str, Any]]:
    return [
        {
            "params": [p for p in parameters.values() if p.ndim > 1],
            "weight_decay": settings.weight_decay,
        },
        {"params": [p for p in parameters.values() if p.ndim <= 1], "weight_decay": 0.0},
    ]


class Muon(torch.optim.Muon):
    """Torch's Muon, whose products have the factors that are asked for where weights are on a CPU.

    Torch has them in bf16, which takes 8 times as long on a CPU without bf16 units (AVX2: 10
    against 83 GFLOP/s for 512 x 2048 on one core, 2026-11), and differs more between machines.
    """

    def __init__(self, params: Any, dtype: torch.dtype = torch.float32, **settings: Any) -> None:
        super().__init__(params, **settings)
        self._dtype = dtype

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        if self.param_groups[0]["params"][0].device.type != "cpu":
            super().step()  # type: ignore[no-untyped-call]
            return
        for group in self.param_groups:
            gradients: list[Tensor] = []
            weights: list[Tensor] = []
            momenta: list[Tensor] = []
            self._init_group(group, weights, gradients, momenta)
            momentum, rate = group["momentum"], group["lr"]
            torch._foreach_lerp_(momenta, gradients, 1 - momentum)
            torch._foreach_mul_(weights, 1 - rate * group["weight_decay"])
            updates = torch._foreach_lerp(gradients, momenta, momentum)
            for places in self._alike(weights):
                together = torch.stack([updates[place] for place in places]).to(self._dtype)
                found = orthogonalized(together if len(places) > 1 else together[0], group).float()
                for place, update in zip(places, found.view_as(together), strict=True):
                    weight = weights[place]
                    weight.add_(update, alpha=-rate * 0.2 * max(weight.shape) ** 0.5)

    def _alike(self, weights: Sequence[Tensor]) -> list[list[int]]:
        """Returns the places of matrices that are computed together.

        In bf16, products of one shape at a time take 0.3 to 0.4 of their time one by one; in fp32
        they gain nothing (docs/log.md).
        """
        if self._dtype is torch.float32:
            return [[place] for place in range(len(weights))]
        by_shape: dict[torch.Size, list[int]] = {}
        for place, weight in enumerate(weights):
            by_shape.setdefault(weight.shape, []).append(place)
        return [*by_shape.values()]


def orthogonalized(matrix: Tensor, group: Mapping[str, Any]) -> Tensor:
    """Returns about U V^T of the singular value decomposition U S V^T, by Newton and Schulz.

    Of several matrices with one shape, [count, rows, columns], that of each.
    """
    a, b, c = group["ns_coefficients"]
    is_tall = matrix.shape[-2] > matrix.shape[-1]
    found: Tensor = matrix.mT if is_tall else matrix
    found = found / found.norm(dim=(-2, -1), keepdim=True).clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = product(found, found.mT)
        polynomial = product(gram, gram).mul_(c).add_(gram, alpha=b)
        found = product(polynomial, found).add_(found, alpha=a)
    return found.mT if is_tall else found


def _local(tensor: Tensor) -> Tensor:
    """Returns this rank's part of a sharded tensor: what is done to each element needs no more."""
    return tensor.to_local() if is_sharded(tensor) else tensor
