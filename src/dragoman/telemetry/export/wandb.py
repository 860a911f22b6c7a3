"""Exports metrics to Weights & Biases: over the network, or in files to be sent later."""

import math
import os
import secrets
from collections.abc import Sequence
from typing import Any

from dragoman.config import Config
from dragoman.errors import CorruptFileError
from dragoman.rundir import RunDir, read_json, write_json
from dragoman.telemetry.events import Stamped
from dragoman.telemetry.export.metrics import Metrics

PROJECT = "dragoman"


def import_wandb() -> Any:
    # Otherwise it tells its makers of errors, in offline mode too.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb  # noqa: PLC0415

    return wandb


class WandbRun:
    """All attempts of a run are one run there: its id is kept in the run directory."""

    def __init__(self, config: Config, run: RunDir, host: str) -> None:
        wandb = import_wandb()
        self._metrics = Metrics(host)
        self._run = wandb.init(
            mode=config.telemetry.wandb,
            dir=str(run.root),
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=config.name,
            id=_identity(run),
            resume="allow",
            config=config.model_dump(mode="json"),
            # Nothing of its own: no output, no sensors, no code, no interference with ours.
            settings=wandb.Settings(
                silent=True,
                console="off",
                x_disable_stats=True,
                x_disable_meta=True,
                disable_git=True,
                disable_code=True,
            ),
        )
        # Its own count of steps may not go back, as ours does when a run resumes.
        self._run.define_metric("*", step_metric="step")

    def send(self, events: Sequence[Stamped]) -> None:
        for stamped in events:
            metrics = {n: value for n, value in self._metrics.of(stamped) if math.isfinite(value)}
            if metrics:
                self._run.log(metrics | {"step": self._metrics.step})

    def close(self) -> None:
        self._run.finish(exit_code=1 if self._metrics.end_state == "failed" else 0)


def _identity(run: RunDir) -> str:
    path = run.root / "wandb.json"
    try:
        return str(read_json(path)["id"])
    except (CorruptFileError, KeyError):
        identity = secrets.token_hex(4)
        write_json(path, {"id": identity})
        return identity
