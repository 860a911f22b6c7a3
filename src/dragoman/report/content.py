"""Everything that a report holds: the schema of report.json, and what both documents show.

Units stand in the names: seconds, bytes, seconds since 1970 for instants, shares from 0 to 1.
`report_schema` derives the JSON schema from these classes, with their docstrings as descriptions.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dragoman.diagnosis.findings import Confidence, Health
from dragoman.diagnosis.questions import QUESTIONS

FORMAT = 3

StateName = Literal["preparing", "training", "broken off", "preempted", "failed", "finished"]
Points = list[float | None]
"""None: not a finite number, or not measured there."""

_AS_MANY_AS_QUESTIONS: dict[str, Any] = {"minItems": len(QUESTIONS), "maxItems": len(QUESTIONS)}


def finite(value: float | None) -> float | None:
    """Returns None for infinity and NaN, which JSON lacks and a run that diverged has plenty of."""
    return value if value is not None and math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """Returns a number of NumPy as one of Python."""
    if value is None or isinstance(value, str):
        return value
    return finite(float(value)) if isinstance(value, float) else int(value)


Finite = Annotated[float | None, BeforeValidator(finite)]


class Content(BaseModel):
    """Fields can be taken from those of the same name of any value: `model_validate`. What was
    written as JSON can be read again."""

    model_config = ConfigDict(
        frozen=True, from_attributes=True, populate_by_name=True, use_attribute_docstrings=True
    )


class EvidenceFigure(Content):
    """A figure on which an answer rests."""

    name: str
    value: Annotated[float | int | str | None, BeforeValidator(_plain)]
    """null: not known."""
    unit: str
    """s, bytes, bytes/s, share (0 to 1), steps, tokens, nats, BLEU, ...; empty: a pure number or a
    word."""
    low: Finite
    """With `high`: a 95 % interval."""
    high: Finite
    note: str


class AdviceContent(Content):
    """One thing to do about an answer."""

    text: str
    command: str
    """For a shell, or lines of the recipe; empty: there is none."""
    is_recipe: bool
    """The command is for the recipe."""
    recipe: str
    """The settings of a command for a shell as lines of a recipe; empty: there are none."""
    saves_s: Finite
    """Of the run's wall time, had it been so from the beginning; null: not known."""
    saves_cost: Finite
    """The same in money, at the price and in the currency of the settings; null: not known."""
    saves: str
    """The same in words: saves about 3 h 5 min and 37.00 USD; empty: not known."""


class Answer(Content):
    """The answer to one question."""

    key: str
    """Names the question for programs."""
    question: str
    verdict: str
    """A few words; "not known" where nothing can be said."""
    health: Health
    """How the verdict is to be taken. open: nothing can be said yet. fact: neither good nor bad."""
    confidence: Confidence
    """none: nothing can be said, and the sentence says why."""
    plain: str
    """The answer in one sentence without jargon; empty: there is none."""
    sentence: str
    """The most important figures, and how they are known."""
    evidence: list[EvidenceFigure]
    advice: list[AdviceContent]
    """What to do about it, the most useful first; empty: nothing needs to be done."""


class RunState(Content):
    """The state of the run."""

    name: StateName
    reason: str
    step: int
    planned_steps: int | None
    silent_s: float | None
    """Since the last sign of life; null once the run has recorded its end."""
    remaining_s: float | None
    """At the pace so far, for a run that is training."""
    sentence: str
    command: str
    """Resumes a run that has stopped before its end; empty: it has not."""


class Model(Content):
    source_language: str
    target_language: str
    preset: str
    vocabulary: int
    parameters: int


class Evaluation(Content):
    """One evaluation during training, on validation."""

    step: int
    validation_loss: Finite
    validation_loss_error: Finite
    """Standard error, from the scatter over the sentences."""
    train_sample_loss: Finite
    train_sample_loss_error: Finite
    bleu: Finite
    bleu_low: Finite
    """With bleu_high: a 95 % interval."""
    bleu_high: Finite
    chrf: Finite
    seconds: float


class Score(Content):
    """The score of a whole held-out set, from `dragoman evaluate`."""

    split: str
    checkpoint_steps: Annotated[list[int], Field(validation_alias="steps")]
    sentences: int
    beam: int
    bleu: Finite
    bleu_low: Finite
    """With bleu_high: a 95 % interval; older scores have none."""
    bleu_high: Finite
    chrf: Finite
    bleu_signature: str
    chrf_signature: str


class AttemptContent(Content):
    """One attempt of the run, from a start to its end."""

    attempt: Annotated[int, Field(validation_alias="number")]
    started_at: float
    wall_s: float
    ranks: int
    hosts: Annotated[list[str], Field(validation_alias="host_names")]
    devices: Annotated[list[str], Field(validation_alias="device_names")]
    first_step: int
    last_step: int
    lost_steps: int
    """Done after the checkpoint from which the next attempt resumed."""
    lost_s: float
    state: StateName
    reason: str


class FaultContent(Content):
    """What interrupted the run, and what it cost."""

    kind: str
    what: str
    at: float
    attempt: int
    step: int
    host: str
    """Empty: no single host, or not known."""
    lost_steps: int
    lost_s: float
    down_s: float
    recovery: str
    """How the run resumed; empty: it has not yet."""


class IncidentContent(Content):
    """An incident that did not stop the run, counted once however many ranks recorded it."""

    what: str
    times: int
    first_step: int
    last_step: int


class Sample(Content):
    source: str
    translation: str
    reference: str
    equals_reference: bool


class SampleSet(Content):
    """Some translations of one held-out set."""

    split: str
    step: int
    samples: list[Sample]


class StepCurves(Content):
    """The steps that the model is made of, as the lowest rank saw them, in at most 1,000 points.

    Each point stands for some steps in a row: up to `step`, from after the point before.
    """

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


class StepTimes(Content):
    """A histogram: `counts[i]` steps took between `edges_s[i]` and `edges_s[i + 1]`."""

    edges_s: list[float]
    counts: list[int]
    longer: int
    """Steps beyond the last edge."""


class HostCurve(Content):
    """One sensor of one host; each point is the mean of some readings in a row."""

    host: str
    sensor: str
    unit: str
    at: list[float]
    mean: Points
    lowest: Points
    highest: Points


class Report(Content):
    """report.json: what became of one training run, as far as its files tell."""

    format: int
    """3; another number where a field has gone or means something else."""
    name: str
    run: str
    """The folder, as it was named to the command."""
    read_at: float
    state: RunState
    model: Model
    answers: Annotated[list[Answer], Field(json_schema_extra=_AS_MANY_AS_QUESTIONS)]
    """To the questions that are always answered, in their order."""
    also: list[Answer]
    """Findings of the other questions, those with something to report."""
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
    schema = Report.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "report.json"} | {
        name: part for name, part in schema.items() if name != "title"
    }
