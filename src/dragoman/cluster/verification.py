"""Shows that a run that is killed resumes as if nothing had happened. Without torch.

A recipe comes in. It is trained for a few steps uninterrupted, and once more with SIGKILL at some
step and the same command again; what both have recorded and saved is compared bit for bit.
"""

import logging
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import psutil
from safetensors import safe_open

from dragoman.checkpoints.names import MODEL, OPTIMIZER, folder_of
from dragoman.config import (
    CheckpointSettings,
    Config,
    PreemptionSettings,
    TelemetrySettings,
    dump_config,
    parse_config,
)
from dragoman.console import StatusLine
from dragoman.errors import RunError
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, write_whole
from dragoman.telemetry.events import AttemptStarted, CheckpointSaved, Event, StepDone, from_line
from dragoman.telemetry.read.events import attempts_so_far, read_events
from dragoman.training.claim import as_found

logger = logging.getLogger(__name__)

LEAST_STEPS = 5
SAVES = 5
"""Checkpoints of a short run, so that a kill at most of its steps loses some steps."""
POLL_EVERY_S = 0.002
"""Less than a step takes, so that a run is killed at the chosen step or soon after."""
SLOW_POLL_EVERY_S = 0.02
TRIES = 3
"""Attempts to kill a run whose steps are so short that it may end first."""
QUIET_S = 2.0
SHOW_EVERY_S = 10.0
ENDING_S = 10.0
"""How long killed processes may take to end; longer only inside a system call that hangs."""

Kind = TypeVar("Kind", bound=Event)


class Compared(NamedTuple):
    losses: int
    tensors: int
    differences: list[str]
    """Empty if all are equal."""


@dataclass(frozen=True)
class Verification:
    killed_at: int
    """The last step that was recorded."""
    resumed_from: int
    device: str
    compared: Compared

    @property
    def is_equal(self) -> bool:
        return not self.compared.differences

    @property
    def sentence(self) -> str:
        losses, tensors, differences = self.compared
        where = f"killed at step {self.killed_at:,}, resumed from step {self.resumed_from:,}"
        if self.is_equal:
            return f"equal: {losses:,} losses and {tensors:,} tensors, {where}"
        on_cpu = self.device.startswith("cpu")
        hint = "" if on_cpu else f"; equal bits are promised on CPU, and this was {self.device}"
        return f"unequal: {'; '.join(differences)}; {where}{hint}"


def verify_resume(
    config: Config, workers: int, steps: int, seed: int, folder: Path
) -> Verification:
    """Trains twice into `folder`, in separate processes, and compares."""
    prepare(config)
    recipe = folder / "recipe.toml"
    short = shortened(config, steps)
    write_whole(recipe, dump_config(short))
    straight, interrupted = RunDir(folder / "straight"), RunDir(folder / "interrupted")

    def command(run: RunDir) -> list[str]:
        words = ["train", recipe, "--run", run.root, "--workers", workers]
        return [sys.executable, "-m", "dragoman", *map(str, words)]

    logger.info(f"straight: {steps:,} steps with {workers} worker{'' if workers == 1 else 's'}")
    _run(command(straight), straight, steps)
    write_whole(recipe, dump_config(as_found(straight, short)))  # or the other might find more

    chosen = kill_step(steps, seed)
    for attempt in range(1, TRIES + 1):
        is_killed = _run(command(interrupted), interrupted, steps, kill_at=chosen)
        killed_at = max((event.step for event in _events(interrupted, StepDone)), default=0)
        if is_killed and killed_at < steps:  # else nothing is left that a resume could do wrong
            break
        if attempt == TRIES:
            raise RunError(
                f"the run ended before it could be killed at step {chosen:,}, {TRIES} times; its "
                "steps are very short, so request more of them with --steps"
            )
        interrupted = RunDir(folder / f"interrupted-{attempt + 1}")
    saved_step = max(event.step for event in _events(interrupted, CheckpointSaved))
    logger.info(
        f"interrupted: SIGKILL at step {killed_at:,} (step {chosen:,} was drawn with seed {seed})"
    )

    _run(command(interrupted), interrupted, steps)
    start = _events(interrupted, AttemptStarted)[-1]
    resumed_from = start.first_step - 1
    logger.info(f"the same command again: resumed from step {resumed_from:,}")
    compared = compare(straight, interrupted, steps)
    if resumed_from < saved_step:
        compared.differences.append(f"the checkpoint of step {saved_step:,} was not used")
    return Verification(killed_at, resumed_from, start.device, compared)


def shortened(config: Config, steps: int) -> Config:
    """Returns the same recipe for this many steps, with little evaluation and no exporters."""
    training = {"steps": steps, "epochs": None, "hours": None, "patience": None}
    evaluation = {
        "every_steps": steps,
        "train_sample_pairs": 0,
        "translate_sentences": 1,
        "samples": 0,
    }
    short = config.model_copy(
        update={
            "training": config.training.model_copy(update=training),
            "evaluation": config.evaluation.model_copy(update=evaluation),
            "checkpoints": CheckpointSettings(every_steps=max(1, steps // SAVES)),
            "telemetry": TelemetrySettings(tensorboard=False),
            "preemption": PreemptionSettings(),
        }
    )
    return parse_config(dump_config(short), origin="the shortened recipe")


def kill_step(steps: int, seed: int) -> int:
    """Returns a step after the first checkpoint, and not so late that the run may end first."""
    first_saved = max(1, steps // SAVES)
    return random.Random(seed).randint(first_saved + 1, steps - first_saved)


def compare(straight: RunDir, interrupted: RunDir, steps: int) -> Compared:
    """Compares the losses of every step, whichever attempt recorded them, and the final state."""
    expected = {event.step: event.loss for event in _events(straight, StepDone)}
    found = [(event.step, event.loss) for event in _events(interrupted, StepDone)]
    if sorted(expected) != list(range(1, steps + 1)):
        raise RunError(f"{straight.events}: holds {len(expected)} of {steps} steps; try again")
    differences = []
    unlike = sorted({step for step, loss in found if repr(loss) != repr(expected.get(step))})
    if unlike:
        other = next(loss for step, loss in found if step == unlike[0])
        differences.append(
            f"{len(unlike):,} of {steps:,} losses, first that of step {unlike[0]:,} "
            f"({other!r} instead of {expected.get(unlike[0])!r})"
        )
    if missing := sorted(expected.keys() - {step for step, _ in found}):
        differences.append(f"{len(missing):,} steps were not repeated, first step {missing[0]:,}")
    one, other_run = (run.checkpoints / folder_of(steps) for run in (straight, interrupted))
    names = 0
    odd: list[str] = []
    for file in (MODEL, OPTIMIZER):
        count, unequal = _unequal_tensors(one / file, other_run / file)
        names += count
        odd += unequal
    if odd:
        differences.append(f"{len(odd):,} of {names:,} tensors, among them {odd[0]}")
    return Compared(len(expected), names, differences)


def _unequal_tensors(one: Path, other: Path) -> tuple[int, list[str]]:
    """Returns the number of tensors, and the names of those that differ in shape, type or a bit."""
    with safe_open(one, framework="numpy") as first, safe_open(other, framework="numpy") as second:
        names = sorted({*first.keys(), *second.keys()})
        common = {*first.keys()} & {*second.keys()}
        return len(names), [
            name
            for name in names
            if name not in common or _bits(first.get_tensor(name)) != _bits(second.get_tensor(name))
        ]


def _bits(tensor: np.ndarray[Any, Any]) -> tuple[str, tuple[int, ...], bytes]:
    return str(tensor.dtype), tensor.shape, tensor.tobytes()


def _run(command: list[str], run: RunDir, steps: int, kill_at: int | None = None) -> bool:
    """Runs until the end, or kills the run at a step after a checkpoint; returns whether it did.

    A run that fails is an error.
    """
    new_events = _new_events(run.events_of(attempts_so_far(run) + 1, rank=0))
    log = run.root.with_suffix(".log")
    line = StatusLine(SHOW_EVERY_S)
    begun = time.monotonic()
    step, has_saved, is_time = 0, False, False
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends that one
        )
    try:
        while process.poll() is None:
            for event in next(new_events):
                step = event.step if isinstance(event, StepDone) else step
                has_saved = has_saved or isinstance(event, CheckpointSaved)
            is_time = kill_at is not None and has_saved and step >= kill_at
            if is_time:
                break
            if step and time.monotonic() - begun > QUIET_S and line.is_due():
                line.show(f"step {step:,} of {steps:,}")
            time.sleep(POLL_EVERY_S if kill_at and step else SLOW_POLL_EVERY_S)
    finally:
        _kill(process)
        line.clear()
    if is_time and process.returncode == -signal.SIGKILL:
        return True
    if process.returncode:
        why = _failure_message(log, process.returncode)
        raise RunError(f"{why} (the run's whole output is in {log})")
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the process with all its descendants at once, so that workers cannot save.

    All are stopped first, parents before children: none can start another, and none can react
    to the death of another, as by ending with exit code 0 because its child is gone.
    """
    with suppress(psutil.NoSuchProcess):
        family = [psutil.Process(process.pid)]
        for member in family:  # grows as it goes
            with suppress(psutil.NoSuchProcess):
                member.suspend()
                family += member.children()
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family[1:], timeout=ENDING_S)
    process.wait()


def _new_events(path: Path) -> Iterator[list[Event]]:
    """Yields, each time, the events added to a file that may not exist yet."""
    rest, read = b"", 0
    while True:
        added = b""
        with suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(read)
            added = file.read()
        read += len(added)
        *lines, rest = (rest + added).split(b"\n")
        stamped = [from_line(line.decode("utf-8", errors="replace")) for line in lines]
        yield [each.event for each in stamped if each]


def _events(run: RunDir, kind: type[Kind]) -> list[Kind]:
    """Returns the events of rank 0, in order of attempts."""
    events = (recorded.stamped.event for recorded in read_events(run, rank=0))
    return [event for event in events if isinstance(event, kind)]


def _failure_message(log: Path, exit_code: int) -> str:
    if exit_code < 0:
        return f"the run was ended by {signal.Signals(-exit_code).name}"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return errors[-1] if errors else next(filter(str.strip, reversed(lines)), "the run failed")
