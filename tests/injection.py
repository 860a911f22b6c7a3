"""Faults put into one rank at one step, for test programs; production code knows nothing of them.

Each is a context that every rank may enter; only the rank that is named is changed.
"""

import math
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Literal
from unittest.mock import patch

import psutil
import torch

from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.training.updater import Updater

# As torch's allocator for CPUs says it; without a GPU this is what there is.
OUT_OF_MEMORY = (
    "[enforce fail at alloc_cpu.cpp:127] data. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 137438953472 bytes. Error code 12 (Cannot allocate memory)"
)

Phase = Literal["accumulation", "forward", "backward"]


@contextmanager
def fail_at(group: Group, rank: int, step: int, phase: Phase, times: int = 1) -> Iterator[None]:
    """Run out of memory on `rank`, the first `times` that the phase of this step is reached.

    accumulation: in forward of a micro-batch that is not the rank's last. forward: of the last.
    backward: of the last, half-way, when the decoder's gradients have been made.
    """
    left = times

    def accumulate(real, self, batch, is_last, *more):
        nonlocal left
        if left and now.step == step and is_last == (phase != "accumulation"):
            left -= 1
            if phase != "backward":
                run_out()
            with patch.object(Transformer, "encode", encode_that_fails_in_backward):
                return real(self, batch, is_last, *more)
        return real(self, batch, is_last, *more)

    real_encode = Transformer.encode

    def encode_that_fails_in_backward(self, *inputs):
        source = real_encode(self, *inputs)
        source.layers[0].keys_BHLK.register_hook(lambda gradient: run_out())
        return source

    with _at_steps(group, rank, _accumulate=accumulate) as now:
        yield


@contextmanager
def memory_for(group: Group, rank: int, step: int, pairs: int) -> Iterator[None]:
    """From `step` on this rank's memory holds no micro-batch of more than so many pairs."""

    def accumulate(real, self, batch, *more):
        if now.step >= step and len(batch.source_BS) > pairs:
            run_out()
        return real(self, batch, *more)

    with _at_steps(group, rank, _accumulate=accumulate) as now:
        yield


@contextmanager
def memory_limit_at(group: Group, rank: int, step: int, more_bytes: int) -> Iterator[None]:
    """During `step` the system refuses memory beyond what this rank has now and so much more."""
    unlimited = resource.getrlimit(resource.RLIMIT_AS)

    def gradients(real, self, work, *more):
        now.step = work.step
        if work.step == step:
            used = psutil.Process().memory_info().vms
            resource.setrlimit(resource.RLIMIT_AS, (used + more_bytes, unlimited[1]))
        return real(self, work, *more)

    def update(real, self, *inputs):
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        return real(self, *inputs)

    with _at_steps(group, rank, gradients=gradients, update=update) as now:
        yield


@contextmanager
def nan_at(group: Group, rank: int, step: int) -> Iterator[None]:
    """One rank's loss is not a number."""

    real_forward = Objective.forward

    def forward_to_nan(self, batch):
        sums = real_forward(self, batch)
        return sums._replace(smoothed=sums.smoothed * math.nan)

    def accumulate(real, self, *inputs):
        with (
            patch.object(Objective, "forward", forward_to_nan)
            if now.step == step
            else nullcontext()
        ):
            return real(self, *inputs)

    with _at_steps(group, rank, _accumulate=accumulate) as now:
        yield


@contextmanager
def signal_at(group: Group, rank: int, step: int, number: int = signal.SIGTERM) -> Iterator[None]:
    """A signal reaches this rank's process while it computes the step."""

    def accumulate(real, self, batch, is_last, *more):
        if now.step == step and is_last:
            os.kill(os.getpid(), number)
        return real(self, batch, is_last, *more)

    with _at_steps(group, rank, _accumulate=accumulate) as now:
        yield


@contextmanager
def other_weights_at(group: Group, rank: int, step: int, names: list[str]) -> Iterator[None]:
    """After the update of this step the lowest bit of one weight of each tensor is flipped."""

    def update(real, self, *inputs):
        done = real(self, *inputs)
        if now.step == step:
            parameters = dict(self.objective.model.named_parameters())
            for name in names:
                parameters[name].data.view(-1).view(torch.int32)[0] ^= 1
        return done

    with _at_steps(group, rank, update=update) as now:
        yield


def run_out() -> None:
    raise RuntimeError(OUT_OF_MEMORY)


class _Now:
    step = 0


@contextmanager
def _at_steps(group: Group, rank: int, **changed: Callable) -> Iterator[_Now]:
    """Put each function in place of the updater's of that name, which it receives first."""
    now = _Now()

    def gradients(real, self, work, *more):
        now.step = work.step
        return real(self, work, *more)

    with ExitStack() as patches:
        if group.rank == rank:
            for name, function in {"gradients": gradients, **changed}.items():
                patches.enter_context(patch.object(Updater, name, _around(name, function)))
        yield now


def _around(name: str, function: Callable) -> Callable:
    real = getattr(Updater, name)
    return lambda self, *inputs: function(real, self, *inputs)
