"""The event schema: everything that training records, one frozen class a kind.

An event is one line of JSON: its kind, wall and monotonic time, and the fields below. Readers skip
kinds and fields that they do not know, so that old reports read new runs.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The first event of each file: who writes it."""

    attempt: int
    rank: int
    ranks: int
    host: str
    device: str
    first_step: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """One optimizer update. Sums over all ranks: loss and tokens. Of this rank alone: the times."""

    step: int
    epoch: float
    loss: float
    """Label-smoothed training loss per target token, with dropout, in nats."""
    tokens: int
    learning_rate: float
    gradient_norm: float
    updated: bool
    """False: the gradients were not finite and the weights were left as they were."""
    step_s: float
    parts_s: dict[str, float] = field(default_factory=dict)
    """Where the time went: data, forward, backward (communication included), optimizer, rest."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Losses are per target token in evaluation mode, unsmoothed: the two can be compared."""

    step: int
    validation_loss: float
    train_sample_loss: float | None
    bleu: float | None
    chrf: float | None
    bleu_signature: str
    chrf_signature: str
    is_best: bool
    seconds: float
    samples: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    step: int
    folder: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that did not stop the run and that its owner should know of."""

    step: int
    what: str


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    step: int
    state: str
    reason: str


Event: TypeAlias = AttemptStarted | StepDone | Evaluated | CheckpointSaved | Trouble | AttemptEnded

_KINDS: dict[str, type[Any]] = {
    "attempt-started": AttemptStarted,
    "step": StepDone,
    "evaluation": Evaluated,
    "checkpoint": CheckpointSaved,
    "trouble": Trouble,
    "attempt-ended": AttemptEnded,
}
_FIELDS = {kind: [field.name for field in dataclasses.fields(kind)] for kind in _KINDS.values()}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Stamped(NamedTuple):
    wall_at: float
    """Seconds since 1970."""
    monotonic_at: float
    """Seconds on the host's monotonic clock: for durations."""
    event: Event


def to_line(stamped: Stamped) -> str:
    head = {"kind": _NAMES[type(stamped.event)]}
    times = {"wall_at": stamped.wall_at, "monotonic_at": stamped.monotonic_at}
    fields = {name: getattr(stamped.event, name) for name in _FIELDS[type(stamped.event)]}
    return json.dumps(head | times | fields, ensure_ascii=False) + "\n"


def from_line(line: str) -> Stamped | None:
    """None: a kind that this version does not know, or a line that was torn by a crash."""
    try:
        content = json.loads(line)
        kind = _KINDS[content["kind"]]
        known = {name: content[name] for name in _FIELDS[kind] if name in content}
        return Stamped(content["wall_at"], content["monotonic_at"], kind(**known))
    except (ValueError, KeyError, TypeError):
        return None
