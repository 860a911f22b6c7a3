"""Every figure of a report, once: the schema of report.json.

Both documents show these values and no others. Units stand in the names: seconds, bytes, seconds
since 1970 for instants, shares from 0 to 1.
"""

from dataclasses import dataclass
from typing import Any, Literal

from dragoman.report.curves import StepCurves

FORMAT = 1

StateName = Literal["preparing", "training", "broken off", "preempted", "failed", "finished"]


@dataclass(frozen=True)
class State:
    name: StateName
    reason: str
    step: int
    planned_steps: int | None
    silent_s: float | None
    """Since the last sign of life; None once the run has said that it ended."""
    remaining_s: float | None
    """At the pace so far, for a run that is training."""


@dataclass(frozen=True)
class Model:
    source_language: str
    target_language: str
    preset: str
    encoder_layers: int
    decoder_layers: int
    width: int
    heads: int
    filter: int
    vocabulary: int
    parameters: int
    weight_bytes: int


@dataclass(frozen=True)
class AttemptFacts:
    attempt: int
    started_at: float
    wall_s: float
    ranks: int
    hosts: list[str]
    devices: list[str]
    first_step: int
    last_step: int
    lost_steps: int
    """Done after the checkpoint that the next attempt went on from."""
    lost_s: float
    state: StateName
    reason: str


@dataclass(frozen=True)
class Times:
    wall_s: float
    """All attempts together, without the time between them."""
    stepping_s: float
    evaluating_s: float
    saving_s: float
    other_s: float
    lost_steps: int
    lost_s: float
    """Part of the times above that a resume threw away: steps and evaluations."""


@dataclass(frozen=True)
class Part:
    mean_s: float
    share: float


@dataclass(frozen=True)
class RankFacts:
    rank: int
    host: str
    device: str
    mean_step_s: float
    part_shares: dict[str, float]


@dataclass(frozen=True)
class Speed:
    """Of the steps that the model is made of, as rank 0 saw them."""

    steps: int
    epochs: float
    tokens: int
    tokens_per_step: float
    tokens_per_s: float
    """While stepping."""
    tokens_per_wall_s: float | None
    """Everything included: evaluations, saving, starting, lost work."""
    mean_step_s: float
    median_step_s: float
    p95_step_s: float
    p99_step_s: float
    slowest_step_s: float
    slowest_step: int
    parts: dict[str, Part]
    ranks: list[RankFacts]


@dataclass(frozen=True)
class EvaluationFacts:
    step: int
    validation_loss: float | None
    train_sample_loss: float | None
    bleu: float | None
    chrf: float | None
    seconds: float


@dataclass(frozen=True)
class Learning:
    """Evaluations during training, on validation."""

    evaluations: list[EvaluationFacts]
    best_bleu: EvaluationFacts | None
    lowest_loss: EvaluationFacts | None
    last: EvaluationFacts | None
    bleu_signature: str
    chrf_signature: str
    sentences: int | None
    """Of the validation set that are translated for BLEU and chrF; None: not known."""
    beam: int


@dataclass(frozen=True)
class Score:
    """Of a whole held-out set, by `dragoman evaluate`."""

    split: str
    checkpoint_steps: list[int]
    sentences: int
    beam: int
    bleu: float | None
    chrf: float | None
    bleu_signature: str
    chrf_signature: str


@dataclass(frozen=True)
class Schedule:
    kind: str
    scale: float
    peak: float
    warmup_steps: int
    final: float
    planned_peak_rate: float
    planned_peak_step: int
    highest_rate: float | None
    """As run."""
    highest_rate_step: int | None
    last_rate: float | None


@dataclass(frozen=True)
class SideFacts:
    language: str
    text_bytes: int
    tokens: int
    unknown_tokens: int


@dataclass(frozen=True)
class SplitFacts:
    split: str
    pairs_in: int
    pairs_kept: int
    dropped: dict[str, int]
    """Reason -> pairs."""
    source: SideFacts
    target: SideFacts


@dataclass(frozen=True)
class Data:
    splits: list[SplitFacts]
    input_files: int
    input_bytes: int


@dataclass(frozen=True)
class FileFacts:
    name: str
    holds: str
    bytes: int


@dataclass(frozen=True)
class CheckpointFacts:
    folder: str
    step: int
    files: list[FileFacts]
    bytes: int
    kept: int
    """Checkpoints on disk."""
    kept_bytes: int
    best: str
    """Name of the best checkpoint's folder; empty: none yet."""
    saves: int
    mean_save_s: float | None


@dataclass(frozen=True)
class Sample:
    source: str
    translation: str
    reference: str
    equals_reference: bool


@dataclass(frozen=True)
class SampleSet:
    split: str
    step: int
    samples: list[Sample]


@dataclass(frozen=True)
class TroubleFacts:
    what: str
    times: int
    first_step: int
    last_step: int


@dataclass(frozen=True)
class Facts:
    format: int
    name: str
    run: str
    read_at: float
    state: State
    model: Model
    times: Times
    speed: Speed | None
    """None: no step is done yet."""
    learning: Learning
    scores: list[Score]
    schedule: Schedule
    data: Data | None
    """None: the manifest is not there yet."""
    checkpoint: CheckpointFacts | None
    """The newest; None: none yet."""
    translations: list[SampleSet]
    skipped_updates: int
    troubles: list[TroubleFacts]
    unreadable: list[str]
    attempts: list[AttemptFacts]
    curves: StepCurves
    settings: dict[str, Any]
