"""Forecasts a step in each way to synchronize, where only the sums are known. Pure, no torch.

A workload and a link come in; seconds and bytes of a step go out, for every mode of `LADDER`. The
time is simulated as in `forecast/step.py`, with what a running or recorded run knows: its rate in
all, and no layout of parameters, so that buckets are taken for equal. Whoever has a recipe and a
check uses `forecast_step`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from dragoman.config import Config, SyncSettings
from dragoman.distributed.fragments import FragmentSchedule
from dragoman.distributed.ring_bytes import mean_bytes_of_mode, messages_of
from dragoman.forecast.layout import even_buckets
from dragoman.forecast.overlap import Message
from dragoman.forecast.step import beside_backward, simulate_window

LARGEST_SHARE = 0.25
"""Of computing: what may be left exposed. The diagnosis calls a run network-bound from a fifth of
the step on, which is the same."""
COLLECTIVES = 2
"""All-to-all and all-gather, one after the other, where values are rounded on the way."""

LADDER: Sequence[SyncSettings] = (
    SyncSettings(mode="fp32"),
    SyncSettings(mode="bf16"),
    SyncSettings(mode="local", local_steps=2, wire="4bit"),
    SyncSettings(mode="local", local_steps=4, wire="4bit"),
    SyncSettings(mode="local", local_steps=8, wire="4bit"),
    SyncSettings(mode="local", local_steps=12, wire="4bit"),
)
"""The mildest first: each sends fewer bytes than the one before, and may lose more quality. Four
bits every second step are fewer bytes than bf16 every seventh, and steps taken alone are what costs
quality, hardly the bits (docs/sync.md), so that no longer window is offered in bf16."""
OPT_IN = SyncSettings(mode="diloco", local_steps=30, wire="4bit")
"""Forecast beside the others and never chosen for anybody: it may give up quality for bytes."""

QUALITY_COST: Mapping[str, str] = {
    "fp32": "",
    "bf16": "Gradients are rounded to bf16, which costs no BLEU (docs/sync.md).",
    "accumulate": "Larger updates learn less from each token: 6.6 BLEU less early in a run, with "
    "four times the tokens (docs/sync.md).",
    "local": "Workers average their weights only now and then: no BLEU less early in a run of two "
    "workers; longer runs and more workers have not been measured (docs/sync.md).",
    "auto": "It takes the mildest mode that is fast enough; their cost in BLEU: see docs/sync.md.",
    "diloco": "Workers average their weights seldom: 4.7 BLEU less early in a run (docs/sync.md).",
}
"""By mode, what it costs in quality; empty: nothing. This is the only place that says so: the
advice of reports and `dragoman config` take it from here."""


class Link(NamedTuple):
    """The way between hosts, as its slowest part is."""

    bytes_per_s: float
    latency_s: float
    """Of one collective that carries next to nothing."""


class Workload(NamedTuple):
    """What the workers do, whatever the mode."""

    parameters: int
    ranks: int
    ranks_on_host: int
    hosts: int
    compute_s: float
    """A step's forward, backward, optimizer and data on the slowest rank."""
    backward_s: float
    """The part of it beside which gradients can travel: at most the last micro-batch's backward."""


class Forecast(NamedTuple):
    """Of a step, in the mean over a window."""

    settings: SyncSettings
    bytes_per_step: float
    """Sent by a host, without headers."""
    sending_s: float
    exposed_s: float
    """Of sending: what no computing hides."""
    step_s: float


def forecast(settings: SyncSettings, workload: Workload, link: Link) -> Forecast:
    """Returns the bytes and seconds of a step with these settings.

    Sending takes its bytes over the link's rate, and the latency of each collective. What does not
    fit beside computing is exposed. Of gradients that is the last bucket at least: it is made when
    backward ends. What encoding and decoding take is not counted.
    """
    sent = mean_bytes_of_mode(
        settings, workload.parameters, workload.ranks, workload.ranks_on_host, workload.hosts
    )
    collectives = collectives_of(settings, workload.parameters)
    sending_s = sent / link.bytes_per_s + collectives * link.latency_s if sent else 0.0
    exposed_s = _exposed_s(settings, workload, sending_s) if sent else 0.0
    return Forecast(settings, sent, sending_s, exposed_s, workload.compute_s + exposed_s)


def _exposed_s(settings: SyncSettings, workload: Workload, sending_s: float) -> float:
    if settings.is_local:
        fragments = settings.fragments or 1
        message = Message(sending_s * settings.window_steps / fragments)
        window = simulate_window(
            FragmentSchedule.of(settings),
            [message] * fragments,
            [0.0] * fragments,
            workload.compute_s,
        )
        return window.exposed_s / settings.window_steps
    buckets = even_buckets(workload.parameters, _buckets(settings, workload.parameters))
    messages = [Message(sending_s / len(buckets))] * len(buckets)
    return beside_backward(buckets, messages, workload.backward_s).exposed_s


def choose(
    workload: Workload,
    link: Link,
    ladder: Sequence[SyncSettings] = LADDER,
    largest_share: float = LARGEST_SHARE,
) -> tuple[list[Forecast], Forecast]:
    """Returns the forecasts of the whole ladder, and the mildest of them that is enough.

    Enough is an exposed time below `largest_share` of computing. Where none is, the one with the
    least is returned. The ladder must not be empty.
    """
    found = [forecast(settings, workload, link) for settings in ladder]
    enough = (each for each in found if each.exposed_s < largest_share * workload.compute_s)
    return found, next(enough, None) or min(found, key=lambda each: each.exposed_s)


def collectives_of(settings: SyncSettings, parameters: int) -> float:
    """Returns how many collectives follow each other in a step, in the mean over a window."""
    if settings.is_local:
        return COLLECTIVES * (settings.fragments or 1) / settings.window_steps
    return _buckets(settings, parameters) * (COLLECTIVES if settings.mode == "bf16" else 1)


def bucket_mb_for(link: Link) -> float:
    """Returns the size of buckets of which the latency is a twentieth of their sending.

    Smaller ones begin to travel earlier and leave less for the end of backward, and each costs the
    latency once. Within torch's own two sizes, 1 and 25.
    """
    return min(25.0, max(1.0, round(20.0 * link.latency_s * link.bytes_per_s / 2**20, 1)))


def _buckets(settings: SyncSettings, parameters: int) -> float:
    return messages_of(4.0 * parameters, settings.bucket_mb)


def seconds_beside(settings: SyncSettings, workload: Workload) -> float:
    """Returns the computing of a window beside which things can travel.

    Where gradients travel in every step, that is the step's backward. Where weights travel once in
    a window, fragment by fragment, each fragment has `delay` steps of computing. The link carries
    one fragment at a time, so that all together have no more than the computing of the window.
    """
    if not settings.is_local:
        return workload.backward_s
    steps = (settings.fragments or 1) * (settings.delay or 0)
    return min(steps, settings.window_steps) * workload.compute_s


def explicit_keys(settings: SyncSettings) -> dict[str, str | int | float]:
    """Returns the keys of [sync] that make these settings, the mode first.

    How often and in which form things travel is always named; other keys only where they differ
    from what follows from these.
    """
    given = settings.model_dump(exclude_none=True)
    keys = {"mode": given["mode"]}
    if settings.is_local:
        keys |= {"local_steps": given["local_steps"], "wire": given["wire"]}
    if "accumulate" in given:
        keys["accumulate"] = given["accumulate"]
    implied = SyncSettings(**keys).model_dump()
    return keys | {
        key: value
        for key, value in given.items()
        if value != implied[key] and key != "accumulate_applied"
    }


def in_a_word(settings: SyncSettings) -> str:
    """Returns the keys that make these settings, such as: local local_steps=8 wire=4bit."""
    keys = explicit_keys(settings)
    others = (f"{key}={value}" for key, value in keys.items() if key != "mode")
    return " ".join([str(keys["mode"]), *others])


def ladder_for(config: Config, ladder: Sequence[SyncSettings] = LADDER) -> list[SyncSettings]:
    """Returns the modes that go with the rest of a recipe, the mildest first."""
    tree = config.model_dump()
    found = []
    for settings in ladder:
        group = config.sync.group if settings.is_local else "rank"
        sync = settings.model_dump() | {"group": group}
        try:
            found.append(type(config).model_validate({**tree, "sync": sync}).sync)
        except ValidationError:
            continue
    return found
