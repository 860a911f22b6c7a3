"""The same events as TensorBoard shows them: scalars in groups, translations as text."""

from collections.abc import Callable, Iterator
from pathlib import Path

from dragoman.console import warn
from dragoman.telemetry.events import CheckpointSaved, Evaluated, Stamped, StepDone


def tensorboard_mirror(folder: Path) -> Callable[[Stamped], None] | None:
    """A function that writes each event it is given; None, with a warning, without TensorBoard."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event  # noqa: PLC0415
        from tensorboard.compat.proto.summary_pb2 import Summary  # noqa: PLC0415
        from tensorboard.plugins.text.metadata import create_summary_metadata  # noqa: PLC0415
        from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415
        from tensorboard.util.tensor_util import make_tensor_proto  # noqa: PLC0415
    except ImportError:
        warn(
            "no TensorBoard files are written; install them with: pip install dragoman[tensorboard]"
        )
        return None

    writer = EventFileWriter(str(folder))

    def mirror(stamped: Stamped) -> None:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in _scalars(stamped)]
        if isinstance(stamped.event, Evaluated) and stamped.event.samples:
            values.append(
                Summary.Value(
                    tag="samples/translations",
                    metadata=create_summary_metadata("samples/translations", ""),
                    tensor=make_tensor_proto([_table(stamped.event.samples).encode()]),
                )
            )
        if values:
            step = getattr(stamped.event, "step", 0)
            writer.add_event(
                Event(wall_time=stamped.wall_at, step=step, summary=Summary(value=values))
            )
        if not isinstance(stamped.event, StepDone):
            writer.flush()

    return mirror


def _scalars(stamped: Stamped) -> Iterator[tuple[str, float]]:
    match stamped.event:
        case StepDone() as step:
            yield "loss/train (smoothed, with dropout)", step.loss
            yield "optimizer/learning rate", step.learning_rate
            yield "optimizer/gradient norm", step.gradient_norm
            yield "speed/target tokens per second", step.tokens / step.step_s
            yield "speed/step seconds", step.step_s
            yield "progress/epoch", step.epoch
            for part, seconds in step.parts_s.items():
                yield f"step parts/{part} seconds", seconds
        case Evaluated() as evaluated:
            yield "loss/validation", evaluated.validation_loss
            if evaluated.train_sample_loss is not None:
                yield "loss/train sample (evaluation mode)", evaluated.train_sample_loss
            if evaluated.bleu is not None:
                yield "quality/BLEU", evaluated.bleu
            if evaluated.chrf is not None:
                yield "quality/chrF", evaluated.chrf
        case CheckpointSaved() as saved:
            yield "checkpoint/seconds", saved.seconds
            yield "checkpoint/megabytes", saved.bytes / 1e6


def _table(samples: list[dict[str, str]]) -> str:
    rows = [f"| {s['source']} | {s['translation']} | {s['reference']} |" for s in samples]
    return "\n".join(["| source | translation | reference |", "|---|---|---|", *rows])
