"""Exports metrics to MLflow: to a server, or to a folder that needs none."""

import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.config import Config
from dragoman.errors import CorruptFileError
from dragoman.rundir import RunDir, read_json, write_json
from dragoman.telemetry.events import Stamped
from dragoman.telemetry.export.metrics import Metrics

EXPERIMENT = "dragoman"
AT_ONCE = 1000
PARAMETERS_AT_ONCE = 100
LONGEST_VALUE = 500
# All that MLflow's names may not have.
_FORBIDDEN = re.compile(r"[^\w\-. :/]")
_STATUS = {"finished": "FINISHED", "failed": "FAILED"}


def import_mlflow() -> Any:
    # MLflow tells its makers how it is used, unless told not to; and refuses folders, unless told
    # to take them, since it would rather have a database.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow  # noqa: PLC0415

    return mlflow


class MlflowRun:
    """All attempts of a run are one run there: its id is kept in the run directory."""

    def __init__(self, config: Config, run: RunDir, host: str) -> None:
        mlflow = import_mlflow()
        self._metric, self._parameter = mlflow.entities.Metric, mlflow.entities.Param
        self._client = mlflow.MlflowClient(tracking_uri=config.telemetry.mlflow)
        self._metrics = Metrics(host)
        self._id = self._earlier_id(config, run) or self._new_id(config, run)
        self._client.update_run(self._id, status="RUNNING")

    def send(self, events: Sequence[Stamped]) -> None:
        metrics = []
        for stamped in events:
            for name, value in self._metrics.of(stamped):
                if math.isfinite(value):
                    key, at_ms = _FORBIDDEN.sub("", name), int(1000 * stamped.wall_at)
                    metrics.append(self._metric(key, value, at_ms, self._metrics.step))
        for begin in range(0, len(metrics), AT_ONCE):
            self._client.log_batch(self._id, metrics=metrics[begin : begin + AT_ONCE])

    def close(self) -> None:
        status = _STATUS.get(self._metrics.end_state or "", "KILLED")
        self._client.set_terminated(self._id, status)

    def _earlier_id(self, config: Config, run: RunDir) -> str:
        try:
            known = read_json(run.root / "mlflow.json")
            if known["uri"] != config.telemetry.mlflow:
                return ""
            return str(self._client.get_run(known["run_id"]).info.run_id)
        except (CorruptFileError, KeyError, import_mlflow().MlflowException):
            return ""

    def _new_id(self, config: Config, run: RunDir) -> str:
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        number = (
            experiment.experiment_id if experiment else self._client.create_experiment(EXPERIMENT)
        )
        identity = str(self._client.create_run(number, run_name=config.name).info.run_id)
        parameters = [
            self._parameter(key, str(value)[:LONGEST_VALUE])
            for key, value in _flat(config.model_dump(mode="json"))
        ]
        for begin in range(0, len(parameters), PARAMETERS_AT_ONCE):
            some = parameters[begin : begin + PARAMETERS_AT_ONCE]
            self._client.log_batch(identity, params=some)
        write_json(run.root / "mlflow.json", {"uri": config.telemetry.mlflow, "run_id": identity})
        return identity


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
