"""Everything a report holds, once: what report.json is, and what both documents show.

Units stand in the names: seconds, bytes, seconds since 1970 for instants, shares from 0 to 1.
`report_schema` derives the JSON schema from these classes, with their docstrings as descriptions.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from dragoman.diagnosis.findings import Confidence, Health
from dragoman.diagnosis.questions import QUESTIONS

FORMAT = 2

StateName = Literal["preparing", "training", "broken off", "preempted", "failed", "finished"]
Points = list[float | None]
"""None: not a finite number, or not measured there."""

_ANSWERS = sum(question.is_always_answered for question in QUESTIONS)
_DESCRIBED = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True)
class EvidenceFigure:
    """A figure on which an answer rests."""

    __pydantic_config__ = _DESCRIBED

    name: str
    value: float | int | str | None
    """null: not known."""
    unit: str
    """s, bytes, bytes/s, share (0 to 1), steps, tokens, nats, BLEU, ...; empty: a pure number or a
    word."""
    low: float | None
    """With `high`: a 95 % interval."""
    high: float | None
    note: str


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    __pydantic_config__ = _DESCRIBED

    key: str
    """Names the question for programs."""
    question: str
    verdict: str
    """A few words; "not known" where nothing can be said."""
    health: Health
    """How the verdict is to be taken. open: nothing can be said yet. fact: neither good nor bad."""
    confidence: Confidence
    """none: nothing can be said, and the sentence says why."""
    sentence: str
    evidence: list[EvidenceFigure]
    advice: str
    """What to do about it; empty: nothing needs to be done."""


@dataclass(frozen=True)
class RunState:
    """Where the run stands."""

    __pydantic_config__ = _DESCRIBED

    name: StateName
    reason: str
    step: int
    planned_steps: int | None
    silent_s: float | None
    """Since the last sign of life; null once the run has said that it ended."""
    remaining_s: float | None
    """At the pace so far, for a run that is training."""
    sentence: str


@dataclass(frozen=True)
class Model:
    __pydantic_config__ = _DESCRIBED

    source_language: str
    target_language: str
    preset: str
    vocabulary: int
    parameters: int


@dataclass(frozen=True)
class Evaluation:
    """One evaluation during training, on validation."""

    __pydantic_config__ = _DESCRIBED

    step: int
    validation_loss: float | None
    validation_loss_error: float | None
    """Standard error, from the scatter over the sentences."""
    train_sample_loss: float | None
    train_sample_loss_error: float | None
    bleu: float | None
    bleu_low: float | None
    """With bleu_high: a 95 % interval."""
    bleu_high: float | None
    chrf: float | None
    seconds: float


@dataclass(frozen=True)
class Score:
    """Of a whole held-out set, by `dragoman evaluate`."""

    __pydantic_config__ = _DESCRIBED

    split: str
    checkpoint_steps: list[int]
    sentences: int
    beam: int
    bleu: float | None
    chrf: float | None
    bleu_signature: str
    chrf_signature: str


@dataclass(frozen=True)
class AttemptContent:
    """One life of the run between two starts."""

    __pydantic_config__ = _DESCRIBED

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
class FaultContent:
    """What broke the run, and what it cost."""

    __pydantic_config__ = _DESCRIBED

    kind: str
    what: str
    at: float
    attempt: int
    step: int
    host: str
    """Empty: of none alone, or nobody knows."""
    lost_steps: int
    lost_s: float
    down_s: float
    recovery: str
    """How the run went on; empty: it has not yet."""


@dataclass(frozen=True)
class IncidentContent:
    """Something that did not stop the run, however many ranks told it."""

    __pydantic_config__ = _DESCRIBED

    what: str
    times: int
    first_step: int
    last_step: int


@dataclass(frozen=True)
class Sample:
    source: str
    translation: str
    reference: str
    equals_reference: bool


@dataclass(frozen=True)
class SampleSet:
    """Some translations of one held-out set."""

    split: str
    step: int
    samples: list[Sample]


@dataclass(frozen=True)
class StepCurves:
    """The steps that the model is made of, as the lowest rank saw them, in at most 1,000 points.

    Each point stands for some steps in a row: up to `step`, from after the point before.
    """

    __pydantic_config__ = _DESCRIBED

    step: list[int]
    training_loss: Points
    """Mean over the target tokens, with dropout and label smoothing."""
    lowest_training_loss: Points
    highest_training_loss: Points
    learning_rate: Points
    """Of the last of the steps, as run."""
    set_learning_rate: Points
    """Of the last of the steps, as the settings say."""
    tokens_per_s: Points
    mean_step_s: Points
    fastest_step_s: Points
    slowest_step_s: Points
    parts_s: dict[str, Points]
    """Part of a step -> its mean seconds."""
    sent_bytes: Points
    """Of a step, on the interface between the ranks, as the kernel counted them."""
    predicted_bytes: Points
    """Of a step, as the algorithm must send them."""


@dataclass(frozen=True)
class StepTimes:
    """A histogram: `counts[i]` steps took between `edges_s[i]` and `edges_s[i + 1]`."""

    __pydantic_config__ = _DESCRIBED

    edges_s: list[float]
    counts: list[int]
    longer: int
    """Steps beyond the last edge."""
    mean_s: float | None
    median_s: float | None


@dataclass(frozen=True)
class HostCurve:
    """One sensor of one host; each point is the mean of some readings in a row."""

    __pydantic_config__ = _DESCRIBED

    host: str
    sensor: str
    unit: str
    at: list[float]
    mean: Points
    lowest: Points
    highest: Points


@dataclass(frozen=True)
class Report:
    """report.json: what became of one training run, as far as its files tell."""

    __pydantic_config__ = _DESCRIBED

    format: int
    """2; another number where a field has gone or means something else."""
    name: str
    run: str
    """The folder, as it was named to the command."""
    read_at: float
    state: RunState
    model: Model
    answers: Annotated[list[Answer], Field(min_length=_ANSWERS, max_length=_ANSWERS)]
    """To the questions that are always answered, in their order."""
    also: list[Answer]
    """What nobody asked for and the owner of the run should know."""
    evaluations: list[Evaluation]
    bleu_signature: str
    """sacreBLEU's, of the evaluations; empty: none yet."""
    chrf_signature: str
    scores: list[Score]
    attempts: list[AttemptContent]
    faults: list[FaultContent]
    troubles: list[IncidentContent]
    skipped_updates: int
    translations: list[SampleSet]
    unreadable: list[str]
    """A sentence for each file, key or line that could not be read and was left out."""
    curves: StepCurves
    step_times: StepTimes
    hosts: list[HostCurve]
    settings: dict[str, Any]
    """config.toml as run."""


def report_schema() -> dict[str, Any]:
    schema = TypeAdapter(Report).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "report.json"} | {
        name: part for name, part in schema.items() if name != "title"
    }
