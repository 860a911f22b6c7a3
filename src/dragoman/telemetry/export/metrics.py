"""Turns events into named metrics, in the words that TensorBoard, MLflow and W&B show.

What stands before the first slash is the group that these programs show together.
"""

from collections.abc import Iterator

from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    DeviceFound,
    EndState,
    Evaluated,
    SensorReading,
    Stamped,
    StepDone,
)

COUNTER = "_total"


class Rates:
    """Turns a host's counters into what they have gained a second since the reading before."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self._before_at = 0.0

    def of(self, monotonic_at: float, values: dict[str, float]) -> dict[str, float]:
        """Returns rates under names that end in _per_s instead of _total; none for a counter just
        begun."""
        counters = {name: count for name, count in values.items() if name.endswith(COUNTER)}
        before, passed_s = self._before, monotonic_at - self._before_at
        self._before, self._before_at = counters, monotonic_at
        if passed_s <= 0:
            return {}
        return {
            f"{name.removesuffix(COUNTER)}_per_s": (count - before[name]) / passed_s
            for name, count in counters.items()
            if count >= before.get(name, float("inf"))
        }


class Metrics:
    """Keeps of earlier events what some metrics need, and what services want to know at the end."""

    def __init__(self, host: str = "", of_rank_only: bool = False) -> None:
        """`of_rank_only`: without what is the same on all ranks, for hosts other than the first."""
        self.step = 0
        """Of the newest event that has one."""
        self.end_state: EndState | None = None
        self._host, self._of_rank_only = host, of_rank_only
        self._rates = Rates()
        self._peak_flops: float | None = None

    def of(self, stamped: Stamped) -> Iterator[tuple[str, float]]:
        self.step = getattr(stamped.event, "step", self.step)
        match stamped.event:
            case StepDone() as step:
                if not self._of_rank_only:
                    yield from _of_step(step)
                yield from self._of_counts(step)
                for part, seconds in step.parts_s.items():
                    yield f"step parts/{part} seconds", seconds
                for way, count in step.traffic_bytes.items():
                    yield f"traffic/{way.replace('_', ' ')} megabytes", count / 1e6
            case AttemptEnded(state=state):
                self.end_state = state
            case DeviceFound(peak_flops=float(peak)):
                self._peak_flops = peak
            case Evaluated() as evaluated:
                yield from _of_evaluation(evaluated)
            case CheckpointSaved() as saved:
                yield "checkpoint/seconds", saved.seconds
                yield "checkpoint/megabytes", saved.bytes / 1e6
            case SensorReading(values=values):
                yield from self._of_reading(stamped.monotonic_at, values)

    def _of_counts(self, step: StepDone) -> Iterator[tuple[str, float]]:
        counts = step.counts
        if counts.get("positions"):
            tokens = counts["source_tokens"] + counts["target_tokens"]
            yield "batch/padding percent", 100 * (1 - tokens / counts["positions"])
            yield "batch/sequences of this rank", counts["sequences"]
        if counts and step.step_s > 0:
            yield (
                "speed/source tokens per second of this rank",
                counts["source_tokens"] / step.step_s,
            )
            if self._peak_flops:
                used = counts["flops"] / step.step_s / self._peak_flops
                yield "speed/model FLOPs utilisation percent", 100 * used
        if step.memory_peak_bytes:
            yield "memory/peak gigabytes of this rank", step.memory_peak_bytes / 1e9

    def _of_reading(
        self, monotonic_at: float, values: dict[str, float]
    ) -> Iterator[tuple[str, float]]:
        states = {name: value for name, value in values.items() if not name.endswith(COUNTER)}
        for name, value in (states | self._rates.of(monotonic_at, values)).items():
            group, _, rest = name.partition("/")
            shown = rest.replace("/", " ").replace("_", " ")
            yield f"{self._host} {group}/{shown}".strip(), value


def _of_step(step: StepDone) -> Iterator[tuple[str, float]]:
    yield "loss/train (smoothed, with dropout)", step.loss
    yield "optimizer/learning rate", step.learning_rate
    yield "optimizer/gradient norm", step.gradient_norm
    if step.step_s > 0:
        yield "speed/target tokens per second", step.tokens / step.step_s
    yield "speed/step seconds", step.step_s
    yield "progress/epoch", step.epoch


def _of_evaluation(evaluated: Evaluated) -> Iterator[tuple[str, float]]:
    yield "loss/validation", evaluated.validation_loss
    if evaluated.train_sample_loss is not None:
        yield "loss/train sample (evaluation mode)", evaluated.train_sample_loss
    if evaluated.bleu is not None:
        yield "quality/BLEU", evaluated.bleu
    if evaluated.chrf is not None:
        yield "quality/chrF", evaluated.chrf
    yield "speed/evaluation seconds", evaluated.seconds
