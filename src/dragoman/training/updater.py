"""The model of a run: forward and backward of this rank's micro-batches, then the update."""

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from dragoman.batches.collate import Batch, cut
from dragoman.batches.loader import StepBatches
from dragoman.config import Config, SyncSettings
from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.model.products import computing_in
from dragoman.model.transformer import Transformer
from dragoman.sync import (
    Islands,
    Mark,
    Stopwatch,
    Sync,
    form_islands,
    free_memory,
    is_out_of_memory,
    synchronized,
)
from dragoman.sync.averaging import average_changes
from dragoman.sync.outer import OuterOptimizer
from dragoman.training import local_state
from dragoman.training.optimizers import Counts, Optimizer
from dragoman.training.schedule import own_step_factor
from dragoman.training.tensors import whole, whole_tensors


@dataclass(frozen=True)
class Gradients:
    """What this rank knows of a step whose gradients have been summed over its island."""

    loss_sum: float
    """Of this rank's micro-batches."""
    norm: float
    """Of the sums over its island."""
    ran_out: bool
    """This rank was out of memory and has sent zeros: the gradients are of no use to anyone."""
    parts_s: dict[str, float]
    """Without communication where it cannot be separated from computing."""


class _Pass(NamedTuple):
    """The stopwatch's marks of a micro-batch."""

    begun: Mark
    between: Mark
    computed: Mark
    ended: Mark


def first_settings(settings: SyncSettings) -> SyncSettings:
    """Returns the settings with which a run begins: auto lets every worker compute on its own until
    it has measured how fast that is."""
    if settings.mode != "auto":
        return settings
    return SyncSettings(mode="local", group=settings.group)


def initial_model(config: Config, vocabulary: int) -> Transformer:
    """Returns the model with which a run begins: a function of its seed."""
    torch.manual_seed(config.training.seed)
    return Transformer(config.model, vocabulary)


class Updater:
    """Holds what is trained and lives as long as the run: model, optimizer and loss scale."""

    sync: Sync
    islands: Islands
    outer: OuterOptimizer | None

    def __init__(
        self, objective: Objective, config: Config, group: Group, hosts: Sequence[str]
    ) -> None:
        """`hosts` are those of each rank. Collective: every rank must call."""
        self.objective, self._hosts = objective, hosts
        self.config, self._group = config, group
        self.sync_settings = first_settings(config.sync)
        """Those in use; with `sync.mode` auto they may change."""
        self._tie_together()
        self._vocabulary = objective.model.embedding.num_embeddings
        self._stopwatch = Stopwatch(group.device)
        self._one = torch.ones((), device=group.device)
        self._norm = torch.zeros((), device=group.device)
        self._update: tuple[Mark, Mark] | None = None
        self.update_s = 0.0
        """Of the last update; on a GPU, of the one before: a step begins while it is being made."""
        self.optimizer = Optimizer(objective.model, config.optimizer, config.training.precision)
        self.scaler = (
            torch.amp.GradScaler(  # passes everything through unless the precision is fp16
                group.device.type, enabled=config.training.precision == "fp16"
            )
        )

    @property
    def model(self) -> Transformer:
        return self.objective.model

    def adopt(self, settings: SyncSettings, step: int) -> None:
        """Goes on with another way to synchronize, after this step.

        Islands that end make their weights common first, and of their moments the mean. Collective:
        every rank must call.
        """
        if settings == self.sync_settings:
            return
        outer, moments = self.outer, [*self.optimizer.tensors().values()]
        if outer:
            outer.drain()
        if outer and moments and not settings.is_local:
            outer.after_step(step, is_last=True)
            if mean := average_changes(moments, self.islands, "fp32").tensors:
                torch._foreach_copy_(moments, mean)
        self.close()
        self.sync_settings = settings
        self._tie_together()
        if outer and self.outer:
            self.outer.load(outer.common(), outer.state().momentum, {}, {})

    def start_over(self) -> None:
        """Loads the initial weights again, as if there had been no update."""
        initial = initial_model(self.config, self._vocabulary)
        self.load(initial.state_dict(), {}, {})

    def load(
        self,
        weights: Mapping[str, torch.Tensor],
        tensors: Mapping[str, torch.Tensor],
        counts: Counts,
    ) -> None:
        """Loads what a checkpoint holds, as `Optimizer.load` does."""
        if not self.outer:
            self.optimizer.load(weights, tensors, counts)
            return
        own = local_state.own_tensors_in(tensors, self.islands.own)
        departed = local_state.unnamed(own, local_state.DEPARTED)
        moments = {
            name: tensor for name, tensor in own.items() if not name.endswith(local_state.DEPARTED)
        }
        self.optimizer.load(weights, moments, counts)
        momentum = local_state.unnamed(tensors, local_state.MOMENTUM)
        mean = local_state.unnamed(tensors, local_state.MEAN)
        self.outer.load(weights, momentum, mean, departed)

    def translating(self) -> Mapping[str, torch.Tensor] | None:
        """Returns the weights that translate, by name; None: the model's own do."""
        return self.outer.common() if self.outer else self.optimizer.averaged()

    def compared(self) -> Mapping[str, torch.Tensor]:
        """Returns the tensors that decide what translates, equal on all ranks with replicas."""
        return self.outer.common() if self.outer else self.optimizer.compared()

    def state_tensors(self, keepers: Sequence[int]) -> dict[str, torch.Tensor]:
        """Returns what this rank saves beside the weights; `keepers`: who saves for each rank.

        Collective: every rank must call.
        """
        tensors = self.optimizer.tensors(with_weights=self.outer is not None)
        if not self.outer:
            return whole_tensors(tensors, kept=keepers[self._group.rank] == self._group.rank)
        if not tensors:  # on no rank
            return {}
        outer = self.outer.state()
        own = {**tensors, **local_state.named(outer.departed, local_state.DEPARTED)}
        return {
            **local_state.collect(own, self.islands, keepers, self._group),
            **local_state.named(outer.momentum, local_state.MOMENTUM),
            **local_state.named(outer.mean, local_state.MEAN),
        }

    def gradients(self, work: StepBatches, pieces: int = 1) -> Gradients:
        """Runs forward and backward, with each micro-batch in that many pieces.

        Collective: every rank must call, with its own share of the same global batch.
        """
        passes: list[_Pass] = []
        loss_sum = torch.zeros((), device=self._group.device)
        ran_out = False
        self.sync.begin_step(work.most_passes - len(work.batches))
        batches = list(_numbered_pieces(work, pieces))
        try:
            for number, batch in batches:
                seed_dropout(self.config.training.seed, work.step, number)
                is_last = number == batches[-1][0]
                loss_sum += self._accumulate(
                    batch.to(self._group.device), is_last, work.summed_tokens, passes
                )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            ran_out = True
        # Not inside the handler, where the error still holds on to all activations.
        if ran_out:
            free_memory(self._group.device)
            self.sync.send_nothing()
        self._norm = self._gradient_norm()
        # Here the host waits for the device, once in a step, and all marks are passed.
        total, norm = torch.stack([loss_sum, self._norm]).tolist()
        if self._stopwatch.reads_late and self._update:
            self.update_s = self._stopwatch.seconds(*self._update)
        return Gradients(0.0 if ran_out else total, norm, ran_out, self._parts(passes))

    def update(self, gradients: Gradients, learning_rate: float, is_finite: bool) -> None:
        """Changes the weights, unless the gradients of any rank are not finite.

        `learning_rate` is the schedule's.
        """
        self._group.pulse.enter("optimizer")
        begun = self._stopwatch.mark()
        self.optimizer.set_rate(learning_rate * self.own_step_factor)
        if not is_finite and self.scaler.is_enabled() and math.isfinite(gradients.norm):
            # Those of another island: the loss scale has to fall here as it falls there.
            next(p.grad for p in self.objective.parameters() if p.grad is not None).fill_(math.inf)
        for part in self.optimizer.parts:
            self.scaler.unscale_(part)
        longest = self.config.optimizer.clip_norm or math.inf
        nn.utils.clip_grads_with_norm_(list(self.objective.parameters()), longest, self._norm)
        if is_finite:
            for part in self.optimizer.parts:
                self.scaler.step(part)
            self.optimizer.update_average()
        self.scaler.update()
        self._update = begun, self._stopwatch.mark()
        if not self._stopwatch.reads_late:
            self.update_s = self._stopwatch.seconds(*self._update)

    def synchronize(self, step: int, is_last: bool) -> float:
        """Synchronizes what is due of the islands' weights; returns the seconds it took.

        Collective: every rank must call.
        """
        if not self.outer:
            return 0.0
        self._group.pulse.enter("synchronization")  # which may take many times a step
        begun = time.perf_counter()
        self.outer.after_step(step, is_last)
        if self._group.device.type == "cuda":
            torch.cuda.synchronize(self._group.device)
        return time.perf_counter() - begun

    def close(self) -> None:
        """Leaves the other ranks; every rank does so when a run ends."""
        if not self.outer or self.outer.close():
            self.islands.close()
        self.sync.close()

    def _tie_together(self) -> None:
        settings = self.sync_settings
        self.islands = form_islands(self._group, self._hosts, settings)
        self.own_step_factor = own_step_factor(settings, self.islands.count)
        self.sync = synchronized(
            self.objective, self._group, self.islands, settings, self.config.training.sharding
        )
        self.outer = None
        if settings.is_local:
            self.outer = OuterOptimizer(self.objective.model, settings, self.islands)

    def _gradient_norm(self) -> torch.Tensor:
        """Returns the norm over all parameters, without the loss scale."""
        gradients = (p.grad for p in self.objective.parameters() if p.grad is not None)
        # Of no gradients, after running out of memory, it is a zero on the CPU.
        norm = whole(nn.utils.get_total_norm(gradients)).to(self._group.device)
        return norm / self.scaler.scale(self._one)

    def _parts(self, passes: list[_Pass]) -> dict[str, float]:
        seconds = self._stopwatch.seconds
        parts = {
            "forward": sum(seconds(each.begun, each.between) for each in passes),
            "backward": sum(seconds(each.between, each.computed) for each in passes),
        }
        if self.sync.knows_exposed:
            parts["communication"] = sum(seconds(each.computed, each.ended) for each in passes)
        return parts

    def _accumulate(
        self, batch: Batch, is_last: bool, summed_tokens: int, passes: list[_Pass]
    ) -> torch.Tensor:
        self._group.pulse.enter("forward")
        begun = self._stopwatch.mark()
        with computing_in(self.config.training.precision, self._group.device.type):
            smoothed = self.sync.forward(batch, is_last).smoothed
        self._group.pulse.enter("backward")
        between = self._stopwatch.mark()
        # Gradients are summed over ranks; what is wanted is the sum over all their target tokens
        # divided by the number of these.
        share = smoothed * (1 / summed_tokens)
        self.scaler.scale(share).backward()  # type: ignore[no-untyped-call]
        ended = self._stopwatch.mark()
        computed = self.sync.last_ready if is_last else None
        passes.append(_Pass(begun, between, computed or ended, ended))
        return smoothed.detach()


def _numbered_pieces(work: StepBatches, pieces: int) -> Iterator[tuple[str, Batch]]:
    """Yields the micro-batches of a rank, or their pieces, with what seeds their dropout."""
    for number, batch in zip(work.numbers, work.batches, strict=True):
        if pieces == 1:
            yield str(number), batch
        else:
            for place, piece in enumerate(cut(batch, pieces)):
                yield f"{number}/{place}", piece


def seed_dropout(seed: int, step: int, micro_batch: str) -> None:
    """Seeds dropout by the micro-batch, whichever rank happens to compute it."""
    digest = hashlib.blake2b(f"{seed}/{step}/{micro_batch}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)
