"""One optimizer update: forward and backward of this rank's micro-batches, then Adam."""

import hashlib
import math
import time
from dataclasses import dataclass

import torch
from torch import nn

from dragoman.batches.loader import StepBatches
from dragoman.config import Config, OptimizerSettings
from dragoman.distributed.group import Group
from dragoman.errors import UserError
from dragoman.sync import without_travel

_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class StepResult:
    loss_sum: float
    """Of this rank's micro-batches."""
    gradient_norm: float
    updated: bool
    parts_s: dict[str, float]


class Updater:
    """Holds what lives as long as the run: the optimizer and the loss scale."""

    def __init__(self, objective: nn.Module, config: Config, group: Group) -> None:
        check_precision(config.training.precision, group.device)
        self._objective, self._config, self._group = objective, config, group
        self.optimizer = _adam(objective, config.optimizer)
        self.scaler = (
            torch.amp.GradScaler(  # passes everything through unless the precision is fp16
                group.device.type, enabled=config.training.precision == "fp16"
            )
        )

    def step(self, work: StepBatches, learning_rate: float) -> StepResult:
        """Collective: every rank must call, with its own share of the same global batch."""
        parts = dict.fromkeys(("forward", "backward", "optimizer"), 0.0)
        loss_sum = torch.zeros((), device=self._group.device)
        self.optimizer.zero_grad()
        for place, (number, batch) in enumerate(zip(work.numbers, work.batches, strict=True)):
            is_last = place == len(work.batches) - 1
            seed_dropout(self._config.training.seed, work.step, number)
            if is_last:
                loss_sum += self._accumulate(batch.to(self._group.device), work.tokens, parts)
            else:
                with without_travel(self._objective):
                    loss_sum += self._accumulate(batch.to(self._group.device), work.tokens, parts)

        begun = time.perf_counter()
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = learning_rate
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(
            self._objective.parameters(), self._config.optimizer.clip_norm or math.inf
        ).item()
        # All ranks hold the same gradients by now, so all come to the same answer.
        updated = math.isfinite(norm)
        if updated:
            self.scaler.step(self.optimizer)
        self.scaler.update()
        parts["optimizer"] = time.perf_counter() - begun
        return StepResult(loss_sum.item(), norm, updated, parts)

    def _accumulate(
        self, batch: object, global_tokens: int, parts: dict[str, float]
    ) -> torch.Tensor:
        precision = _PRECISIONS[self._config.training.precision]
        begun = time.perf_counter()
        with torch.autocast(
            self._group.device.type, dtype=precision, enabled=precision is not torch.float32
        ):
            smoothed: torch.Tensor = self._objective(batch).smoothed
        between = time.perf_counter()
        # Synchronization takes the mean over ranks; the gradient wanted is the sum over all
        # target tokens of the step divided by their number.
        share = smoothed * (self._group.ranks / global_tokens)
        self.scaler.scale(share).backward()  # type: ignore[no-untyped-call]
        parts["forward"] += between - begun
        parts["backward"] += time.perf_counter() - between
        return smoothed.detach()


def check_precision(precision: str, device: torch.device) -> None:
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError(
            f"{torch.cuda.get_device_name(device)} has no bf16; set training.precision to fp16, "
            "which comes with loss scaling"
        )


def seed_dropout(seed: int, step: int, micro_batch: int) -> None:
    """Dropout belongs to the micro-batch, not to the rank that happens to compute it."""
    digest = hashlib.blake2b(f"{seed}/{step}/{micro_batch}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)


def _adam(objective: nn.Module, settings: OptimizerSettings) -> torch.optim.AdamW:
    matrices = [parameter for parameter in objective.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in objective.parameters() if parameter.ndim <= 1]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=True,
    )
