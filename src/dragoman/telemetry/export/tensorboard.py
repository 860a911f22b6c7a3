"""Writes events as TensorBoard shows them: metrics in groups, translations as text."""

from pathlib import Path
from typing import Any

from dragoman.telemetry.events import Evaluated, SensorReading, Stamped, StepDone
from dragoman.telemetry.export.metrics import Metrics

SAMPLES = "samples/translations"
STEPS_EVERY_S = 0.5
"""Of faster steps some are left out: writing one takes 0.3 ms (2026-11, this package's own code),
and TensorBoard shows a thousand points of a curve at most."""


class TensorBoardFiles:
    def __init__(self, folder: Path, host: str = "", of_rank_only: bool = False) -> None:
        from tensorboard.compat.proto.event_pb2 import Event  # noqa: PLC0415
        from tensorboard.compat.proto.summary_pb2 import Summary  # noqa: PLC0415
        from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415

        self._new_event, self._new_summary = Event, Summary
        self._metrics = Metrics(host, of_rank_only)
        self._next_step_at = 0.0
        self._writer = EventFileWriter(str(folder))

    def __call__(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, StepDone):
            if stamped.monotonic_at < self._next_step_at:
                return
            self._next_step_at = stamped.monotonic_at + STEPS_EVERY_S
        values = [
            self._new_summary.Value(tag=name, simple_value=value)
            for name, value in self._metrics.of(stamped)
        ]
        if isinstance(stamped.event, Evaluated) and stamped.event.samples:
            values.append(self._text(stamped.event.samples))
        if values:
            self._writer.add_event(
                self._new_event(
                    wall_time=stamped.wall_at,
                    step=self._metrics.step,
                    summary=self._new_summary(value=values),
                )
            )
        if not isinstance(stamped.event, StepDone | SensorReading):
            self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _text(self, samples: list[dict[str, str]]) -> Any:
        from tensorboard.plugins.text.metadata import create_summary_metadata  # noqa: PLC0415
        from tensorboard.util.tensor_util import make_tensor_proto  # noqa: PLC0415

        return self._new_summary.Value(
            tag=SAMPLES,
            metadata=create_summary_metadata(SAMPLES, ""),
            tensor=make_tensor_proto([_table(samples).encode()]),
        )


def _table(samples: list[dict[str, str]]) -> str:
    rows = [f"| {s['source']} | {s['translation']} | {s['reference']} |" for s in samples]
    return "\n".join(["| source | translation | reference |", "|---|---|---|", *rows])
