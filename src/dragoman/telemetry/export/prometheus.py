"""Serves the newest metrics for Prometheus to fetch, from this machine only."""

import re
import threading
from collections.abc import Iterator
from typing import Any

from dragoman.telemetry.events import (
    CheckpointSaved,
    Evaluated,
    Incident,
    SensorReading,
    Stamped,
    StepDone,
)
from dragoman.telemetry.export.metrics import COUNTER

ADDRESS = "127.0.0.1"
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_]")


class PrometheusEndpoint:
    """http://127.0.0.1:<port>/metrics, served from a thread of its own."""

    def __init__(self, port: int, run_name: str, host: str) -> None:
        import prometheus_client  # noqa: PLC0415
        from prometheus_client import core  # noqa: PLC0415

        self._families: dict[bool, Any] = {
            True: core.CounterMetricFamily,
            False: core.GaugeMetricFamily,
        }
        self._labels = {"run": run_name, "host": host}
        self._lock = threading.Lock()
        self._of_run: dict[str, tuple[str, float]] = {}
        self._parts_s: dict[str, float] = {}
        self._sensors: dict[str, float] = {}
        registry = prometheus_client.CollectorRegistry()
        registry.register(self)
        self._server, self._thread = prometheus_client.start_http_server(
            port, addr=ADDRESS, registry=registry
        )

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def __call__(self, stamped: Stamped) -> None:
        with self._lock:
            match stamped.event:
                case StepDone() as step:
                    self._set("step", "Steps done", step.step)
                    self._set("loss", "Smoothed training loss per token", step.loss)
                    self._set("learning_rate", "Learning rate", step.learning_rate)
                    self._set("gradient_norm", "Norm of the gradient", step.gradient_norm)
                    self._set("epoch", "Times through the data", step.epoch)
                    self._set("step_seconds", "Of the last step", step.step_s)
                    self._add("tokens_total", "Target tokens of this attempt", step.tokens)
                    self._parts_s = step.parts_s
                case Evaluated() as evaluated:
                    self._set("validation_loss", "Per token", evaluated.validation_loss)
                    for name, score in (("bleu", evaluated.bleu), ("chrf", evaluated.chrf)):
                        if score is not None:
                            self._set(name, "Of the validation set", score)
                case CheckpointSaved() as saved:
                    self._set("checkpoint_step", "Of the newest checkpoint", saved.step)
                    self._set("checkpoint_seconds", "To save it", saved.seconds)
                case Incident():
                    self._add("troubles_total", "Of this attempt", 1)
                case SensorReading(values=values):
                    self._sensors = values

    def collect(self) -> Iterator[Any]:
        """Yields what Prometheus is answered; called on the thread that serves it."""
        with self._lock:
            of_run, parts_s, sensors = dict(self._of_run), self._parts_s, self._sensors
        for name, (meaning, value) in of_run.items():
            yield self._family(name, meaning, {"": value})
        yield self._family("step_part_seconds", "Of the last step", parts_s, "part")
        by_name: dict[str, dict[str, float]] = {}
        for path, value in sensors.items():
            group, *device, quantity = path.split("/")
            by_name.setdefault(f"{group}_{quantity}", {})["/".join(device)] = value
        for name, values in by_name.items():
            yield self._family(name, "Read on the host", values, "device")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _family(self, name: str, meaning: str, values: dict[str, float], label: str = "") -> Any:
        """Returns one value for each label value; an empty label is left out."""
        family = self._families[name.endswith(COUNTER)](
            f"dragoman_{_FORBIDDEN.sub('_', name)}",
            meaning,
            labels=[*self._labels, *([label] if any(values) else [])],
        )
        for value_of_label, value in values.items():
            more = [value_of_label] if any(values) else []
            family.add_metric([*self._labels.values(), *more], value)
        return family

    def _set(self, name: str, meaning: str, value: float) -> None:
        self._of_run[name] = meaning, value

    def _add(self, name: str, meaning: str, value: float) -> None:
        _, before = self._of_run.get(name, (meaning, 0.0))
        self._of_run[name] = meaning, before + value
