"""status.json: a run at a glance, kept up to date from its events."""

import json
import math
import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from dragoman.config import StepsOrZero
from dragoman.errors import CorruptFileError, StorageError
from dragoman.jsonfile import read_model
from dragoman.rundir import RunDir, write_json
from dragoman.telemetry.events import AttemptEnded, AttemptStarted, Evaluated, Stamped, StepDone

HEARTBEAT_EVERY_S = 2.0


class Status(BaseModel):
    """What the file holds; what a later version adds is kept as it is."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    state: str = ""
    attempt: StepsOrZero = 0
    ranks: StepsOrZero = 0
    step: StepsOrZero = 0
    reason: str = ""
    loss: float | None = None
    validation_loss: float | None = None
    bleu: float | None = None
    heartbeat_at: float | None = None


def read_status(run: RunDir) -> Status:
    """Returns the status; of a run that has none yet, one in which nothing is set."""
    if not run.status.exists():
        return Status()
    return read_model(run.status, Status, "remove this file, and training writes it again")


def mark_preparing(run: RunDir) -> None:
    """Sets the state between the start of a command and its first step."""
    try:
        before = read_status(run).model_dump(exclude_unset=True)
    except CorruptFileError:  # nothing depends on it, and it is about to be written anew
        before = {}
    write_json(run.status, before | {"state": "preparing", "heartbeat_at": time.time()})


class StatusFile:
    """Given rank 0's events, writes the file now and then, and always when the state changes."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._content: dict[str, Any] = {}
        self._next_write = 0.0

    def __call__(self, stamped: Stamped) -> None:
        match stamped.event:
            case AttemptStarted(attempt=attempt, ranks=ranks, first_step=first):
                self._set("training", attempt=attempt, ranks=ranks, step=first - 1, reason="")
            case StepDone(step=step, loss=loss):
                self._content |= {"step": step, "loss": _finite(loss)}
            case Evaluated(validation_loss=loss, bleu=bleu):
                self._content |= {"validation_loss": _finite(loss)}
                if bleu is not None:  # else it is computed beside training, and comes later
                    self._content["bleu"] = bleu
            case AttemptEnded(state=state, step=step, reason=reason):
                self._set(state, step=step, reason=reason)
        if time.monotonic() >= self._next_write:
            self._next_write = time.monotonic() + HEARTBEAT_EVERY_S
            content = self._content | {"heartbeat_at": stamped.wall_at}
            try:
                write_json(self._run.status, content)
            except StorageError:
                if not isinstance(stamped.event, AttemptEnded):
                    raise
                self._write_in_place(content)

    def _write_in_place(self, content: dict[str, Any]) -> None:
        """Writes on a full disk too, which has no room for a second file, how the run ended."""
        with self._run.status.open("r+b") as file:
            file.write(json.dumps(content).encode())
            file.truncate()

    def _set(self, state: str, **more: Any) -> None:
        self._content |= {"state": state} | more
        self._next_write = 0.0


def _finite(value: float) -> float | None:
    """Returns None for what JSON has no number for."""
    return value if math.isfinite(value) else None
