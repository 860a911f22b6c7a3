"""A program of several ranks that plays scenarios, one after the other, in one process group.

Importing torch and meeting each other takes longer than most scenarios, so that they share it.
Run as `python -m torch.distributed.run ... scenarios.py RECIPE FOLDER NAME...`; each rank writes
what it has seen to FOLDER/NAME/seen-RANK.json.
"""

import dataclasses
import hashlib
import json
import shutil
import sys
import weakref
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import injection
import torch
import wire_scenario
from torch.nn.parallel import DistributedDataParallel

from dragoman.config import Config, parse_config
from dragoman.distributed.group import Group, join
from dragoman.distributed.pulse import ONE_HOST_SILENT_S
from dragoman.errors import DragomanError, FailedElsewhereError
from dragoman.forecast.sync_modes import Link
from dragoman.rundir import RunDir
from dragoman.sync import Replicas
from dragoman.telemetry.events import AttemptEnded
from dragoman.training.auto_sync import NetworkWatch
from dragoman.training.interruption import interruptions
from dragoman.training.tensors import whole
from dragoman.training.train import train
from dragoman.training.updater import Updater

Seen = dict[str, Any]

# No dropout: then a step in pieces is the step, and losses can be compared.
SETTINGS = (
    "training.micro_batch_tokens=130",
    "training.steps=8",
    "training.compare_every_steps=2",
    "model.dropout=0.0",
    "evaluation.every_steps=100",
    "evaluation.translate_sentences=4",
    "evaluation.train_sample_pairs=0",
    "checkpoints.every_steps=3",
    "checkpoints.keep_last=10",
)

OPTIMIZERS = {
    "average": ("optimizer.average_decay=0.9",),
    "schedule-free": ("optimizer.kind=schedule-free", "schedule.kind=constant"),
    "muon": ("optimizer.kind=muon",),
}


class Stage:
    """One scenario on one rank: where it writes, and how it trains."""

    def __init__(self, group: Group, recipe: Path, folder: Path) -> None:
        self.group, self.folder, self._recipe = group, folder, recipe

    def config(self, *overrides: str) -> Config:
        return parse_config(
            self._recipe.read_text(encoding="utf-8"), "scenario", (*SETTINGS, *overrides)
        )

    def train(self, *overrides: str, run: str = "run") -> Seen:
        """Train in the process group that is there; what came of it."""
        with _weights_after_updates() as weights:
            try:
                ending = self.train_or_fail(*overrides, run=run)
            except DragomanError as error:
                return {"error": type(error).__name__, "says": str(error), "culprit": error.culprit}
        return {"ending": dataclasses.asdict(ending), "weights": weights}

    def train_or_fail(self, *overrides: str, run: str = "run") -> AttemptEnded:
        config, directory = self.config(*overrides), RunDir(self.folder / run)
        with (
            patch("dragoman.training.train.join", lambda device: nullcontext(self.group)),
            interruptions() as interruption,
        ):
            return train(config, directory, interruption=interruption)

    @contextmanager
    def hosts(self):
        """Every rank as if on a host of its own, without a file system in common."""
        of_a_host = dataclasses.replace(self.group, local_rank=0)
        with (
            patch.object(Group, "host", property(lambda group: f"host{group.rank}")),
            patch.object(self, "group", of_a_host),
        ):
            yield


@contextmanager
def _weights_after_updates():
    """Name -> hash of each tensor, as it was after the last step."""
    hashes: dict[str, str] = {}
    real = Updater.synchronize

    def synchronize(self, *step, **is_last):
        seconds = real(self, *step, **is_last)
        for name, tensor in self.objective.model.state_dict().items():
            hashes[name] = hashlib.sha256(whole(tensor).numpy().tobytes()).hexdigest()
        return seconds

    with patch.object(Updater, "synchronize", synchronize):
        yield hashes


@contextmanager
def _sent_before_running_out():
    """(buckets sent, buckets of a step) each time that this rank has run out of memory."""
    counts: list[tuple[int, int]] = []
    real = Replicas.send_nothing

    def send_nothing(self):
        before = len(self._sent)
        real(self)
        counts.append((before, len(self._sent)))

    with patch.object(Replicas, "send_nothing", send_nothing):
        yield counts


@contextmanager
def _freed_by_renewal():
    """Whether each renewal has let go of the buckets before it made new ones."""
    answers: list[bool] = []
    real = Replicas.renew

    def renew(self):
        before = weakref.ref(self._parallel)
        real(self)
        answers.append(before() is None)

    with patch.object(Replicas, "renew", renew):
        yield answers


@contextmanager
def _small_buckets():
    """So small that every few parameters travel on their own, as those of a large model do."""
    real = DistributedDataParallel.__init__

    def small(self, *inputs, **named):
        real(self, *inputs, **named | {"bucket_cap_mb": 0.01})

    with patch.object(DistributedDataParallel, "__init__", small):
        yield


def plain(stage: Stage) -> Seen:
    return stage.train()


def with_dropout(stage: Stage) -> Seen:
    return stage.train("model.dropout=0.1", "training.steps=20")


def optimizers(stage: Stage) -> Seen:
    return {
        kind: stage.train("model.dropout=0.1", "training.steps=20", *settings, run=kind)
        for kind, settings in OPTIMIZERS.items()
    }


def sharded_optimizers(stage: Stage) -> Seen:
    """Where states may be sharded: a run with replicas, and one with and without sharding."""
    seen = {}
    for kind in ("average", "schedule-free"):
        settings = (*OPTIMIZERS[kind], "optimizer.clip_norm=0.5")
        stage.train(*settings, run=f"{kind}-replicas")
        stage.train(*settings, "training.steps=3", "training.sharding=full", run=kind)
        stage.train(*settings, "training.steps=6", run=kind)
        seen[kind] = stage.train(*settings, "training.sharding=full", run=kind)
    return seen


def bf16(stage: Stage) -> Seen:
    """Beside a run in fp32; then with memory that runs out while buckets are on their way."""
    settings = ("model.dropout=0.1", "training.steps=20")
    with _small_buckets():
        exact = stage.train(*settings, run="exact")
        halved = stage.train(*settings, "sync.mode=bf16", run="bf16")
        short = stage.train(*settings, "sync.mode=bf16", "training.steps=9", run="stopped")
        again = stage.train(*settings, "sync.mode=bf16", run="stopped")
    with ExitStack() as entered:
        for rank, step, phase in ((1, 2, "backward"), (0, 4, "forward")):
            entered.enter_context(injection.fail_at(stage.group, rank, step, phase))
        entered.enter_context(_small_buckets())
        out_of_memory = stage.train("sync.mode=bf16", run="out-of-memory")
    with _small_buckets():
        undisturbed = stage.train("sync.mode=bf16", run="undisturbed")
    return {
        "exact": exact,
        "bf16": halved,
        "parts": [short],
        "stopped": again,
        "out-of-memory": out_of_memory,
        "undisturbed": undisturbed,
    }


LOCAL = {
    "local": ("sync.mode=local", "sync.local_steps=4", "sync.fragments=2"),
    "diloco": ("sync.mode=diloco", "sync.local_steps=6", "sync.fragments=3", "sync.wire=4bit"),
    "burst": ("sync.mode=local", "sync.local_steps=4", "sync.fragments=1", "sync.wire=bf16"),
}


def local_steps(stage: Stage) -> Seen:
    """Each mode undisturbed, stopped while weights travel, and with all that may happen."""
    settings = ("model.dropout=0.1", "training.steps=22", "evaluation.every_steps=9")
    seen: Seen = {"exact": stage.train(*settings, run="exact")}
    for mode, of_mode in LOCAL.items():
        changes = (*settings, *of_mode)
        seen[mode] = stage.train(*changes, run=mode)
        with injection.signal_at(stage.group, rank=1, step=9):
            seen[f"{mode}-first"] = stage.train(*changes, run=f"{mode}-stopped")
        seen[f"{mode}-stopped"] = stage.train(*changes, run=f"{mode}-stopped")
    with ExitStack() as entered:
        for rank, step, phase in ((1, 2, "backward"), (0, 7, "forward")):
            entered.enter_context(injection.fail_at(stage.group, rank, step, phase))
        seen["short"] = stage.train(*LOCAL["local"], run="short")
    seen["whole"] = stage.train(*LOCAL["local"], run="whole")
    return seen


def local_not_finite(stage: Stage) -> Seen:
    """A gradient that is not finite on one rank, while weights travel and as they arrive, and a
    rollback."""
    seen = {}
    for step in (3, 4):
        with injection.nan_at(stage.group, rank=1, step=step):
            seen[f"nan-{step}"] = stage.train(
                *LOCAL["local"], "training.precision=fp16", run=f"nan-{step}"
            )
    with (
        patch("dragoman.training.divergence.WINDOW", 2),
        injection.nan_at(stage.group, rank=1, step=7),
    ):
        seen["rollback"] = stage.train(
            *LOCAL["local"],
            *("training.max_skipped=0", "training.max_rollbacks=1", "checkpoints.every_steps=1"),
            run="rollback",
        )
    return seen


def local_hosts(stage: Stage) -> Seen:
    """Every rank on a host of its own that keeps its own checkpoints; one of them is then lost."""
    run = f"host{stage.group.rank}/run"
    settings = (*LOCAL["local"], "model.dropout=0.1", "training.steps=16")
    with stage.hosts():
        first = stage.train(*settings, "training.steps=8", run=run)
        if stage.group.rank == 1:  # as if it had been killed before it could save
            shutil.rmtree(stage.folder / run / "checkpoints" / "step-00000008")
        second = stage.train(*settings, run=run)
        if stage.group.rank == 1:
            shutil.rmtree(stage.folder / run / "checkpoints")
        lost = stage.train(*settings, "training.steps=20", run=run)
    together = stage.train(*settings, run="together")
    return {"parts": [first], "resumed": second, "lost": lost, "together": together}


def host_islands(stage: Stage) -> Seen:
    """Ranks 0 and 1 are one host and the last another: exact within, synchronized between."""
    last = stage.group.ranks - 1
    name = "host1" if stage.group.rank == last else "host0"
    with patch.object(Group, "host", property(lambda group: name)):
        seen = stage.train(*LOCAL["local"], "sync.group=host", "training.steps=12")
    return {"run": seen}


SLOW, FAST = Link(1e3, 1e-3), Link(1e12, 1e-6)


@contextmanager
def _links(*found: Link, looks_after: int = -1):
    """As if these links were measured, one after the other; looks again after so many steps."""
    with (
        patch("dragoman.training.auto_sync.measure_link", Mock(side_effect=found)),
        patch.object(NetworkWatch, "looks_again", lambda watch, _: watch._steps == looks_after),
    ):
        yield


def auto(stage: Stage) -> Seen:
    """Links that are slow, that become faster and slower, and a run that is stopped and resumed."""
    settings = ("sync.mode=auto", "model.dropout=0.1", "training.steps=20")
    with _links(SLOW, FAST, FAST, looks_after=6):
        seen = {"faster": stage.train(*settings, run="faster")}
    with _links(FAST, SLOW, SLOW, looks_after=6):
        seen["slower"] = stage.train(*settings, run="slower")
    with _links(SLOW):
        seen["straight"] = stage.train(*settings, run="straight")
    with _links(SLOW), injection.signal_at(stage.group, rank=1, step=9):
        stage.train(*settings, run="stopped")
    with _links():  # what was chosen is kept, without another look
        seen["stopped"] = stage.train(*settings, run="stopped")
    return seen


def sharded(stage: Stage) -> Seen:
    """One run from end to end, and one that is stopped, goes on without it, then with it again."""
    sharding = "training.sharding=full"
    whole = stage.train("model.dropout=0.1", "training.steps=20", sharding, run="whole")
    first = stage.train("training.steps=3", sharding)
    second = stage.train("training.steps=6")
    return {"parts": [whole, first, second], **stage.train(sharding)}


def sharded_fp16(stage: Stage) -> Seen:
    """Loss scaling, clipping and a NaN, which all look at the gradients of every shard."""
    seen = {}
    for sharding in ("none", "full"):
        with injection.nan_at(stage.group, rank=1, step=3):
            seen[sharding] = stage.train(
                "training.precision=fp16",
                "optimizer.clip_norm=0.5",
                f"training.sharding={sharding}",
                run=sharding,
            )
    return seen


def sharded_out_of_memory(stage: Stage) -> Seen:
    """The last of a program: it ends with the error, as a rank of a run does."""
    with injection.fail_at(stage.group, rank=1, step=2, phase="backward"):
        stage.train_or_fail("training.sharding=full")
    raise AssertionError("it should have ended")


def signal(stage: Stage) -> Seen:
    with injection.signal_at(stage.group, rank=1, step=3):
        return stage.train()


def nan(stage: Stage) -> Seen:
    with injection.nan_at(stage.group, rank=1, step=3):
        return stage.train()


def out_of_memory(stage: Stage) -> Seen:
    """In each phase of one step or another, the very first among them, on one rank or on two."""
    faults = [
        (1, 1, "backward"),
        (1, 2, "accumulation"),
        (0, 4, "forward"),
        (1, 5, "backward"),
        (0, 7, "backward"),
        (1, 7, "forward"),
    ]
    with ExitStack() as entered:
        for rank, step, phase in faults:
            entered.enter_context(injection.fail_at(stage.group, rank, step, phase))
        entered.enter_context(_small_buckets())
        sent = entered.enter_context(_sent_before_running_out())
        freed = entered.enter_context(_freed_by_renewal())
        return {**stage.train(), "sent": sent, "freed": freed}


def single_pairs(stage: Stage) -> Seen:
    with injection.memory_for(stage.group, rank=1, step=3, pairs=1):
        return stage.train("training.steps=3")


def memory_limit(stage: Stage) -> Seen:
    """Memory that really runs out: in step 2 the system gives rank 1 only so much more."""
    settings = (
        *("training.steps=2", "training.tokens_per_update=500", "model.filter=65536"),
        *("training.micro_batch_tokens=320", "evaluation.translate_sentences=1"),
    )
    with injection.freed_memory_given_back():  # or step 2 would need none of the system's
        whole = stage.train(*settings, run="undisturbed")
        with injection.memory_limit_at(stage.group, rank=1, step=2, more_bytes=150 << 20):
            return {"parts": [whole], **stage.train(*settings)}


def not_even_a_pair(stage: Stage) -> Seen:
    with injection.memory_for(stage.group, rank=1, step=3, pairs=0):
        return stage.train()


def other_weights(stage: Stage) -> Seen:
    last = stage.group.ranks - 1
    names = [f"decoder.0.cross_attention.{name}.weight" for name in ("query", "key_value")]
    with injection.other_weights_at(stage.group, last, step=3, names=names):
        return stage.train()


def other_seed(stage: Stage) -> Seen:
    return stage.train(f"training.seed={1 + stage.group.rank // (stage.group.ranks - 1)}")


def other_code(stage: Stage) -> Seen:
    code = "of-the-last-rank" if stage.group.rank == stage.group.ranks - 1 else "usual"
    with patch("dragoman.training.agreement.code_hash", lambda: code):
        return stage.train()


def other_data(stage: Stage) -> Seen:
    is_last = stage.group.rank == stage.group.ranks - 1
    folder = "other-prepared" if is_last else "prepared"
    return stage.train(f"data.prepared={stage.folder.parent.parent / folder}")


def no_data(stage: Stage) -> Seen:
    is_last = stage.group.rank == stage.group.ranks - 1
    return stage.train(*(["data.prepared=nowhere"] if is_last else []))


def restore_elsewhere(stage: Stage) -> Seen:
    """Only rank 0's host has the first checkpoints; then only the last rank's host has any."""
    group = stage.group
    with stage.hosts():
        first = stage.train("training.steps=4", run=f"host{group.rank}/run")
        second = stage.train("training.steps=6", run=f"host{group.rank}/run")
        moved = f"host{(group.rank + 1) % group.ranks}/run"
        third = stage.train(run=moved)
    return {"parts": [first, second], **third}


def roll_back_elsewhere(stage: Stage) -> Seen:
    """Rank 0's host is a new one and has saved nothing yet when numbers go wrong."""
    run = f"host{stage.group.rank}/run"
    with stage.hosts():
        first = stage.train("training.steps=6", run=run)
        if stage.group.leads:
            shutil.rmtree(stage.folder / run / "checkpoints")
        with (
            patch("dragoman.training.divergence.WINDOW", 2),
            injection.nan_at(stage.group, rank=1, step=7),
        ):
            second = stage.train("training.max_skipped=0", "training.max_rollbacks=1", run=run)
    return {"parts": [first], **second}


def wire(stage: Stage) -> Seen:
    return wire_scenario.play(stage.group)


SCENARIOS: dict[str, Callable[[Stage], Seen]] = {
    scenario.__name__: scenario
    for scenario in (
        plain,
        with_dropout,
        optimizers,
        bf16,
        local_steps,
        local_not_finite,
        local_hosts,
        host_islands,
        auto,
        sharded_optimizers,
        sharded,
        sharded_fp16,
        sharded_out_of_memory,
        signal,
        nan,
        out_of_memory,
        single_pairs,
        memory_limit,
        not_even_a_pair,
        other_weights,
        other_seed,
        other_code,
        other_data,
        no_data,
        restore_elsewhere,
        roll_back_elsewhere,
        wire,
    )
}


def main(recipe: Path, folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    # All ranks are on this machine, where silence only means that it is busy.
    with patch("dragoman.distributed.group.SILENT_S", ONE_HOST_SILENT_S), join("cpu") as group:
        for name in names:
            stage = Stage(group, recipe, folder / name)
            seen = SCENARIOS[name](stage)
            path = stage.folder / f"seen-{group.rank}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    except DragomanError as failure:
        if not isinstance(failure, FailedElsewhereError):
            print(f"error: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
