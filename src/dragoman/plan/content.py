"""Everything that a plan holds: the schema of `dragoman plan --json`, and what documents show.

Units stand in the names: seconds, bytes, bits and bytes a second, shares from 0 to 1.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from dragoman.forecast.quantity import Quantity

FORMAT = 1


class Content(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


class Figure(Content):
    """A figure with its interval."""

    value: float
    low: float
    high: float
    """With `low`: where the truth is expected nine times out of ten."""
    is_measured: bool
    """All that it follows from was measured; otherwise something was assumed."""
    basis: str
    """What it was measured by, or what is assumed."""

    @classmethod
    def of(cls, quantity: Quantity) -> "Figure":
        return cls(**quantity._asdict())


class Input(Content):
    """A figure that the plan starts from."""

    name: str
    unit: str
    """s, bytes/s, bytes, hosts, workers, a price a hour, or empty for a pure number."""
    figure: Figure


class Mode(Content):
    """A step, and the run, in one way to synchronize."""

    name: str
    """Its keys in a word: local local_steps=8 wire=4bit."""
    settings: dict[str, str | int | float]
    """Keys of [sync] that make it."""
    is_own: bool
    """The recipe has it."""
    is_recommended: bool
    refused: str
    """Why the rest of the recipe does not go with it; empty: it does."""
    quality: str
    """What it costs in quality; empty: nothing."""
    bytes_per_step: float
    """Sent by a host for the tokens of one update of the recipe, without headers."""
    compute_s: Figure
    """Of one update of the recipe, as are all seconds here."""
    sending_s: Figure
    exposed_s: Figure
    """Of sending, with the workers' small message: what no computing hides."""
    slowed_s: Figure
    """By which computing is slower since communication uses the same cores."""
    step_s: Figure
    hours: Figure | None
    """Of the whole run; null: the recipe does not say how long it is."""
    cost: Figure | None
    """Of the whole run; null: no price or no length is known."""
    steps: int | None
    """Updates of the recipe that the run comes to, which `training.hours` may make fewer; null: the
    recipe does not say how long it is."""


class NodesPoint(Content):
    """The run on another number of hosts, with the recipe's own way to synchronize."""

    nodes: int
    step_s: Figure
    tokens_per_s: float
    """Target tokens."""
    efficiency: float
    """Tokens a second of a host, as a share of those that one host alone reaches."""
    hours: float | None
    cost: float | None
    note: str
    """What has to change in the recipe for it; empty: nothing."""


class LinkPoint(Content):
    """The run on links of another rate."""

    bits_per_s: float
    step_s: dict[str, float]
    """Name of a mode -> seconds of one update of the recipe."""


class Memory(Content):
    """Of one device, or of one worker's share of a host."""

    state_bytes: float
    """Weights, gradients and optimizer."""
    activation_bytes: float
    """Of the recipe's own micro-batches."""
    micro_batch_tokens: int | None
    """Of the recipe's own micro-batches; null: training finds the largest that fit."""
    device_bytes: float | None
    """null: not known."""
    largest_micro_batch_tokens: int | None
    """That fits; null: not known. 0: the model alone does not fit."""
    is_measured: bool
    basis: str

    @property
    def is_enough(self) -> bool:
        """Returns whether the recipe's own micro-batches fit, or are made to fit."""
        if self.device_bytes is None:
            return True
        needed = self.state_bytes
        needed += self.activation_bytes if self.micro_batch_tokens else 0.0
        return needed <= self.device_bytes


class LearningRate(Content):
    kind: str
    peak_step: int
    peak_rate: float
    steps: list[int]
    rates: list[float]
    sentences: list[str]


class Gain(Content):
    """What another cluster would change."""

    what: str
    saved_hours: float | None
    """Negative: it takes longer."""
    saved_cost: float | None
    """Negative: it costs more."""
    sentence: str


class Recommendation(Content):
    mode: str
    sentence: str
    reason: str
    recipe: str
    """Lines for the recipe; empty: leave it as it is."""


class Plan(Content):
    """What a run will take, as far as its recipe and a check or an assumption tell."""

    format: Annotated[int, Field(ge=1)] = FORMAT
    dragoman: str
    recipe: str
    origin: str
    is_measured: bool
    hosts: int
    workers: int
    """Of each host."""
    parameters: int
    tokens_per_update: int
    steps: int | None
    """Updates of the recipe; null: the recipe does not say."""
    currency: str
    budget: float
    """`cost.budget`; 0: none."""
    inputs: list[Input]
    modes: list[Mode]
    """The recipe's own way to synchronize first, then the others, the mildest first."""
    evaluation_hours: float
    """Of the run, while training stands still."""
    saving_hours: float
    """Of the run, by which saves slow it down."""
    nodes: list[NodesPoint]
    links: list[LinkPoint]
    memory: Memory
    learning_rate: LearningRate
    gains: list[Gain]
    recommendation: Recommendation

    @property
    def own(self) -> Mode:
        return self.modes[0]

    @property
    def waits_longer_than_it_computes(self) -> bool:
        """Returns whether communication takes longer than computing in the recipe's own mode."""
        return self.own.exposed_s.value + self.own.slowed_s.value > self.own.compute_s.value

    @property
    def is_ended_by_the_clock(self) -> bool:
        """Returns whether `training.hours` ends the run before its last step, or alone does."""
        return self.own.steps is not None and self.own.steps != self.steps

    @property
    def exceeds_budget(self) -> bool:
        return bool(self.budget and self.own.cost and self.own.cost.value > self.budget)

    def summary_lines(self) -> list[str]:
        """Returns the plan in three lines."""
        from dragoman.plan.words import summary_lines  # noqa: PLC0415 (it imports this module)

        return summary_lines(self)


def plan_schema() -> dict[str, Any]:
    schema = Plan.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
