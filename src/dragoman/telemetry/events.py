"""The event schema: everything that training records, one frozen class a kind.

An event is one line of strict JSON: its kind, wall and monotonic time, and the fields below. JSON
has no NaN and no Infinity, so a float that is not finite is written as null, and null where a float
must be is read as NaN; in a group such as `parts_s` it is a value that is not there.

Readers skip kinds and fields that they do not know, so that old reports read new runs; whatever is
added has a default, so that new reports read old runs. A change that old readers would get wrong
raises `FORMAT`. Times are written to the microsecond, all else as it is.
"""

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from dragoman.telemetry.format_1 import RENAMED, upgraded

FORMAT = 2
"""Of the events that this version writes. Format 1 had the facts of incidents, ends and sensors in
prose alone, and wrote NaN and Infinity; `telemetry.format_1` still reads it."""

IncidentCategory: TypeAlias = Literal[
    "update-skipped",
    "rollback",
    "out-of-memory",
    "checkpoint",
    "mirror",
    "weights-differ",
    "evaluation",
    "telemetry",
    "other",
]
EndState: TypeAlias = Literal["finished", "preempted", "failed"]
EndCause: TypeAlias = Literal[
    "",  # not known: a file of format 1
    "steps",  # finished: a limit of the recipe
    "epochs",
    "hours",
    "patience",  # finished: no better evaluation
    "signal",  # preempted
    "notice",  # preempted: the cloud takes a host away
    "error",  # failed
    "lost-rank",  # failed: another rank died, hung or fell silent
    "diverged",  # failed: rollbacks did not help
    "out-of-memory",  # failed: even single pairs do not fit
    "weights-differ",  # failed: replicas hold different weights
]


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The first event of each file: who writes it."""

    attempt: int
    rank: int
    ranks: int
    host: str
    device: str
    first_step: int
    format: int = 1
    """Of the events in this file; files from before there was a number have none."""


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
    """Where the time went: part -> seconds, in the order in which the parts happened."""
    traffic_bytes: dict[str, float] = field(default_factory=dict)
    """Of the interface between ranks: sent and received as the kernel counted them, sent as the
    algorithm predicts it. Only in the events of one rank of each host."""
    counts: dict[str, float] = field(default_factory=dict)
    """Of this rank's share of the step: source_tokens and target_tokens without padding, positions
    (both sides, with padding), sequences, and flops, which the model needs for its tokens."""
    memory_peak_bytes: float | None = None
    """The most that this rank has held at once so far: on a GPU of its memory, else resident."""
    ready_s: float | None = None
    """From the end of the agreement before, which all ranks leave together, until this rank had
    made its last gradients. At the first step of an attempt, from the beginning of the step."""


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
    """Of losses whose scores are still computed beside training and decide: false."""
    seconds: float
    samples: list[dict[str, str]] = field(default_factory=list)
    validation_loss_error: float | None = None
    """Standard error of the loss, from its scatter over the sentences."""
    train_sample_loss_error: float | None = None
    bleu_low: float | None = None
    """With bleu_high the 95 % interval, by resampling sentences."""
    bleu_high: float | None = None
    compared_step: int | None = None
    """The best evaluation before this one, with which its translations were compared."""
    bleu_gain_p: float | None = None
    """How probable a BLEU difference of this size to that one is by the choice of sentences alone
    (paired resampling, both directions)."""
    arrived_step: int | None = None
    """Of scores that were computed beside training: the step that was done when they were there.
    An event with the losses alone, and their seconds, came before it. None: of all others."""
    beside_s: float | None = None
    """How long that took beside training; `seconds` are those in which training stood still."""


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    step: int
    folder: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that did not end the attempt and that its owner should know of."""

    step: int
    category: IncidentCategory
    message: str
    """For people. Programs read the other fields: it may be reworded at any time."""
    ranks: tuple[int, ...] = ()
    """Whom it happened to; empty: all alike, or nobody knows."""
    rollback_step: int | None = None
    """Of a rollback: the step of the checkpoint from which the run goes on."""
    rate_factor: float | None = None
    """Of a rollback: what the schedule's learning rate is multiplied by from here on."""
    pieces: int | None = None
    """Of out-of-memory: into how many pieces each micro-batch of the step is cut from here on."""


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The last event of a file, unless its writer was killed."""

    step: int
    state: EndState
    reason: str
    """For people. Programs read the other fields: it may be reworded at any time."""
    cause: EndCause = ""
    culprit_rank: int | None = None
    """Whose fault or whose notice it was; None: of no single rank, or nobody knows."""
    culprit_host: str = ""
    """Of that rank."""
    could_not_write: bool = False
    """The system refused to write, mostly because a disk is full."""


@dataclass(frozen=True, slots=True)
class SensorsFound:
    """What can be read on a host; emitted at the start and whenever it changes."""

    host: str
    present: list[str]
    absent: dict[str, str]
    """Sensor, or one value of a sensor -> why there is none."""
    about: dict[str, str] = field(default_factory=dict)
    """Device -> what it is, for people."""
    cores: int | None = None
    """Logical processors of the host."""
    link_bytes_per_s: dict[str, float] = field(default_factory=dict)
    """Network interface -> the rate that it announces; without those that announce none."""


@dataclass(frozen=True, slots=True)
class SensorReading:
    """Of the host of the rank that writes it, about once a second."""

    values: dict[str, float]
    """<group>/<value> or <group>/<device>/<value>. What ends in _total only ever counts up."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How this host's clocks stand to rank 0's; positive: they are ahead."""

    host: str
    offset_s: float
    """Of the wall clock."""
    monotonic_offset_s: float
    error_s: float
    """Of either: the truth is no further away than this."""


@dataclass(frozen=True, slots=True)
class DeviceFound:
    """What a rank computes on; emitted at the start."""

    device: str
    name: str
    precision: str
    peak_flops: float | None
    """A second, in large matrix products of that precision; measured. None: not known."""
    memory_bytes: float | None


@dataclass(frozen=True, slots=True)
class SyncChosen:
    """With `sync.mode` auto: how the ranks synchronize after this step, and why."""

    step: int
    settings: dict[str, Any]
    """Keys of [sync]."""
    link_bytes_per_s: float
    """Of a host, measured in collectives."""
    link_latency_s: float
    compute_s: float
    """Of a step on the slowest rank."""
    exposed_s: dict[str, float] = field(default_factory=dict)
    """Settings in a word -> forecast: what a step waits for the network."""


@dataclass(frozen=True, slots=True)
class ForecastMade:
    """What was forecast before the attempt began, from what a check of its hosts had measured."""

    ranks: int
    hosts: list[str]
    """Whom it was made for."""
    checked_at: float
    """When they were measured, in seconds since 1970."""
    step_s: float
    step_low_s: float
    """With step_high_s the interval that should hold the mean step."""
    step_high_s: float
    compute_s: float
    """Of a step, on the slowest rank."""
    exposed_s: float
    """Of a step: what no computing hides of its communication."""
    bytes_per_step: float
    """Sent by a host."""
    hours: float | None = None
    """Of the whole run; None: its length is not known."""
    cost: float | None = None
    """Of the whole run; None: no price is known, or no length."""
    currency: str = ""
    host_prices: dict[str, float] = field(default_factory=dict)
    """Host -> its price per hour, where one is known."""
    sent_bytes_per_s: dict[str, float] = field(default_factory=dict)
    """Host -> the most that it could send to any other, measured."""
    received_bytes_per_s: dict[str, float] = field(default_factory=dict)
    """Host -> the most that it could receive from any other, measured."""


@dataclass(frozen=True, slots=True)
class ScheduleExtended:
    """A cosine or linear schedule gets a new tail after its end; emitted by rank 0 at the start of
    an attempt before it."""

    step: int
    """The last step before the tail."""
    last_step: int
    """The last step of the tail."""
    rate: float
    """From which it falls in a straight line."""
    final: float
    """To which it falls."""


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """What is missing in this file, because the disk was too slow or refused to write."""

    count: int
    """Since the last event of this kind."""
    total: int
    """Since the file was begun."""


Event: TypeAlias = (
    AttemptStarted
    | StepDone
    | Evaluated
    | CheckpointSaved
    | Incident
    | AttemptEnded
    | SensorsFound
    | SensorReading
    | ClockOffset
    | DeviceFound
    | SyncChosen
    | ForecastMade
    | ScheduleExtended
    | EventsDropped
)

KINDS: dict[str, type[Any]] = {
    "attempt-started": AttemptStarted,
    "step": StepDone,
    "evaluation": Evaluated,
    "checkpoint": CheckpointSaved,
    "incident": Incident,
    "attempt-ended": AttemptEnded,
    "sensors-found": SensorsFound,
    "sensors": SensorReading,
    "clock": ClockOffset,
    "device": DeviceFound,
    "sync-chosen": SyncChosen,
    "forecast": ForecastMade,
    "schedule-extended": ScheduleExtended,
    "dropped": EventsDropped,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_FIELDS = {kind: [field.name for field in dataclasses.fields(kind)] for kind in KINDS.values()}
# Losses and norms are compared bit for bit between runs; of a duration nobody can tell a
# microsecond, and full doubles would be a quarter of the file.
_IS_TIME = {
    kind: [name.endswith(("_s", "_at", "seconds")) or name == "epoch" for name in names]
    for kind, names in _FIELDS.items()
}
_TIME_DIGITS = 6
_INTEGER_LIMIT = 1 << 63
_HEAD_BYTES = 48


class Stamped(NamedTuple):
    wall_at: float
    """Seconds since 1970."""
    monotonic_at: float
    """Seconds on the host's monotonic clock: for durations."""
    event: Event


def to_line(stamped: Stamped) -> str:
    event = stamped.event
    kind = type(event)
    content: dict[str, Any] = {
        "kind": _NAMES[kind],
        "wall_at": round(stamped.wall_at, _TIME_DIGITS),
        "monotonic_at": round(stamped.monotonic_at, _TIME_DIGITS),
    }
    for name, is_time in zip(_FIELDS[kind], _IS_TIME[kind], strict=True):
        value = getattr(event, name)
        content[name] = _to_microseconds(value) if is_time else value
    return _encoder.encode(content).decode() + "\n"


def kind_of(line: bytes) -> type[Any] | None:
    """Returns what a line says first of all: {"kind":"step", in older runs {"kind": "step"."""
    head = line[:_HEAD_BYTES].split(b'"', 4)
    if len(head) < 5 or head[1] != b"kind":
        return None
    name = head[3].decode(errors="replace")
    return KINDS.get(RENAMED.get(name, name))


def from_line(line: str | bytes) -> Stamped | None:
    """Returns the event of a line of any format up to `FORMAT`.

    None: a kind that this version does not know, a line that was torn by a crash, or one with
    values of another type than the kind has.
    """
    try:
        content = upgraded(json.loads(line, parse_int=_integer))
        kind = KINDS[content["kind"]]
        for field in dataclasses.fields(kind):
            value = content.get(field.name, field)
            if value is None and field.type is float:
                content[field.name] = math.nan
            elif isinstance(value, dict) and field.type == dict[str, float]:
                content[field.name] = {n: v for n, v in value.items() if v is not None}
        event = msgspec.convert(content, kind)
        head = msgspec.convert((content["wall_at"], content["monotonic_at"]), tuple[float, float])
        if "\\u" in str(line):
            json.dumps(content, ensure_ascii=False).encode()  # fails for halves of a character
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return Stamped(*head, event)


def _integer(digits: str) -> int | float:
    """Returns numbers that do not fit into 64 bits as floats, which no field for integers takes."""
    value = float(digits)
    return int(digits) if abs(value) < _INTEGER_LIMIT else value


def _to_microseconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {part: round(seconds, _TIME_DIGITS) for part, seconds in value.items()}
    return value if value is None else round(value, _TIME_DIGITS)


def _plain_float(value: object) -> float:
    """Returns a float of a class of its own, such as NumPy's, as one that JSON knows."""
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not for JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain_float)
