import math

import pytest
import torch
from recorded import events
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.model.transformer import Transformer
from dragoman.telemetry.events import (
    Incident,
    StepDone,
)
from dragoman.training.updater import Updater


def test_gradients_that_are_not_finite_change_nothing_and_are_told(run_with, monkeypatch):
    forward = Transformer.forward
    poisoned = []

    def sometimes_infinite(self, *inputs):
        hidden = forward(self, *inputs)
        if self.training and poisoned == [] and len(calls) == 5:
            poisoned.append(True)
            return hidden * math.inf
        calls.append(1)
        return hidden

    calls: list[int] = []
    monkeypatch.setattr(Transformer, "forward", sometimes_infinite)
    _, run = run_with("training.steps=6", "evaluation.every_steps=100", "training.seed=5")
    skipped = [event.step for event in events(run, StepDone) if not event.updated]
    assert len(skipped) == 1
    assert [event.step for event in events(run, Incident)] == skipped
    weights = Checkpoint((run.checkpoints / "latest").resolve()).model()
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_like_full_precision(run_with, precision):
    _, full = run_with("training.steps=15", "model.dropout=0.0", name="full")
    _, half = run_with(
        *("training.steps=15", "model.dropout=0.0", f"training.precision={precision}"), name="half"
    )
    updated = [event for event in events(half, StepDone) if event.updated]
    assert len(updated) >= 12
    if precision == "bf16":
        for one, other in zip(events(full, StepDone), events(half, StepDone), strict=True):
            assert one.loss == pytest.approx(other.loss, rel=0.02)
    assert updated[-1].loss < 0.95 * updated[0].loss
    state = Checkpoint((half.checkpoints / "latest").resolve()).state()["run"]
    assert bool(state["loss_scaling"]) == (precision == "fp16")


class CountWaits(TorchDispatchMode):
    """Counts the numbers that the host asks a device for, each of which waits for its queue."""

    def __init__(self):
        super().__init__()
        self.waits = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.waits += function is torch.ops.aten._local_scalar_dense.default
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_the_host_waits_for_its_device_only_once_in_a_step(run_with, monkeypatch, kind):
    counted = []
    for name in ("gradients", "update"):
        original = getattr(Updater, name)

        def counting(*arguments, original=original):
            with CountWaits() as mode:
                result = original(*arguments)
            counted.append(mode.waits)
            return result

        monkeypatch.setattr(Updater, name, counting)
    run_with("training.steps=2", "model.dropout=0.0", f"optimizer.kind={kind}")
    assert counted == [0] * 4, "loss and norm come in one list, which is the only thing waited for"
