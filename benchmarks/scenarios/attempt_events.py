"""The lines that each rank of a simulated attempt writes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dragoman.config import Config
from dragoman.model.size import training_flops_per_token
from dragoman.telemetry.events import (
    FORMAT,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    DeviceFound,
    EndCause,
    EndState,
    Evaluated,
    Event,
    Incident,
    SensorReading,
    SensorsFound,
    Stamped,
    StepDone,
    to_line,
)
from dragoman.training.schedule import learning_rate
from scenarios import recipe
from scenarios.learning import gradient_norms, running_losses
from scenarios.lines import lines_of
from scenarios.pace import Pace, wire_bytes
from scenarios.readings import CHATTER, about_of, announced_rates, readings_of
from scenarios.world import Floats, Life, World

CLOCKS_EVERY_S = 600.0
MONOTONIC_AT = (5_000.0, 811_000.0, 43_000.0, 2_000_000.0)
"""Of each host when the run begins: how long it has been up."""
WRITE_BYTES_PER_S = 400e6
MEAN_LENGTH = 30
EXPLODING_STEPS, EXPLODED_NATS = 55, 4.0
_USUAL_CAUSE: dict[EndState, EndCause] = {
    "finished": "steps",
    "preempted": "signal",
    "failed": "error",
}

Line = tuple[float, str]
"""(seconds since the run began, text)."""


@dataclass(frozen=True)
class Attempt:
    number: int
    life: Life
    world: World
    """With the machines of this attempt."""
    pace: Pace
    begun_s: float
    """Since the run began."""
    evaluations: list[Evaluated]


def shared_columns(config: Config, attempt: Attempt, chance: np.random.Generator) -> dict[str, Any]:
    """Of steps, what all ranks see alike."""
    world = attempt.world
    steps = attempt.pace.steps
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    rates = np.array([rate(step) for step in steps.tolist()])
    tokens = np.round(
        config.training.tokens_per_update * np.exp(chance.normal(0, 0.02, len(steps)))
    ).astype(np.int64)
    losses = running_losses(world, steps, chance)
    for place in attempt.pace.rolled_back:  # what made the run go back
        losses[max(0, place - EXPLODING_STEPS) : place + 1] += EXPLODED_NATS
    return {
        "step": steps,
        "epoch": steps * config.training.tokens_per_update / world.dataset.tokens,
        "loss": losses,
        "tokens": tokens,
        "learning_rate": rates * world.rate_factor(steps),
        "gradient_norm": gradient_norms(world, steps, chance),
        "updated": ~np.isin(steps, world.learning.skipped),
    }


def lines_of_rank(
    config: Config,
    attempt: Attempt,
    rank: int,
    shared: dict[str, Any],
    times: Floats,
    chance: np.random.Generator,
) -> Iterable[Line]:
    world, machines, pace = attempt.world, attempt.world.machines, attempt.pace
    host = machines.host_of(rank)
    is_first_of_host = rank % machines.ranks_per_host == 0
    for at, event in _single_events(config, attempt, rank):
        (wall,), (monotonic,) = clocks_of(world, host, np.array([at]))
        yield at, to_line(Stamped(float(wall), float(monotonic), event))

    ends = attempt.begun_s + pace.end[rank]
    columns = shared | _own_columns(config, attempt, rank, shared["tokens"], chance)
    if len(ends):
        yield from zip(
            ends.tolist(), lines_of(StepDone, *clocks_of(world, host, ends), columns), strict=True
        )
    if is_first_of_host and len(times):
        read_at = attempt.begun_s + times
        values = readings_of(world, host, pace, times, attempt.begun_s, chance)
        lines = lines_of(SensorReading, *clocks_of(world, host, read_at), {"values": values})
        yield from zip(read_at.tolist(), lines, strict=True)


def _own_columns(
    config: Config,
    attempt: Attempt,
    rank: int,
    tokens: Any,
    chance: np.random.Generator,
) -> dict[str, Any]:
    """Of steps, what is this rank's alone."""
    world, machines, pace = attempt.world, attempt.world.machines, attempt.pace
    parts = {part: values[rank] for part, values in pace.parts.items()}
    if not world.recorded.agreement:
        parts["rest"] = parts["rest"] + parts.pop("agreement")
    columns: dict[str, Any] = {"step_s": pace.step_s[rank], "parts_s": parts}
    if world.recorded.agreement:
        columns["ready_s"] = pace.ready_s[rank]
    counts_traffic = machines.ranks > 1 and rank % machines.ranks_per_host == 0
    if world.recorded.traffic and counts_traffic:
        sent = pace.sent_bytes if world.link.shows_on_interfaces else CHATTER * pace.step_s[rank]
        received = sent * np.exp(chance.normal(0, 0.001, len(pace.steps)))
        columns["traffic_bytes"] = {
            "sent": np.round(sent),
            "received": np.round(received),
            "predicted": np.full(len(pace.steps), wire_bytes(world, config)),
        }
    if world.recorded.counts:
        target = np.round(tokens / machines.ranks)
        source = np.round(0.97 * target)
        columns["counts"] = {
            "source_tokens": source,
            "target_tokens": target,
            "positions": np.round((source + target) / (1 - world.work.padding)),
            "sequences": np.round(target / 26),
            "flops": target * _flops_per_token(config),
        }
        peak = world.work.memory_share * machines.memory_bytes
        if machines.device == "cpu":  # all ranks of a host live in the same memory
            peak /= machines.ranks_per_host
        columns["memory_peak_bytes"] = np.round(peak * (1 - 0.05 * np.exp(-pace.steps / 40.0)))
    return columns


def _flops_per_token(config: Config) -> float:
    return float(training_flops_per_token(config.model, config.tokenizer.vocabulary, MEAN_LENGTH))


def _single_events(config: Config, attempt: Attempt, rank: int) -> Iterator[tuple[float, Event]]:
    """(seconds since the run began, event): all but steps and readings."""
    world, pace, life = attempt.world, attempt.pace, attempt.life
    machines = world.machines
    host = machines.host_of(rank)
    is_first_of_host = rank % machines.ranks_per_host == 0
    begun, ends = attempt.begun_s, attempt.begun_s + pace.over
    name, device = machines.hosts[host], recipe.device_of(machines, rank)
    yield (
        begun,
        AttemptStarted(attempt.number, rank, machines.ranks, name, device, life.first_step, FORMAT),
    )
    if world.recorded.devices:
        work = world.work
        share = config.training.tokens_per_update / machines.ranks * _flops_per_token(config)
        peak = share / (work.forward_s + work.backward_s) / machines.efficiency
        found = DeviceFound(device, machines.name, machines.precision, peak, machines.memory_bytes)
        yield begun + 0.2, found
    if world.recorded.sensors and is_first_of_host and config.telemetry.sensors_every_s:
        present = ["cpu", "rank", "memory", "disk", "network", "tcp"]
        on_cpu = machines.device == "cpu"
        absent = {"gpu": "NVML: Driver Not Loaded"} if on_cpu else {}
        sensors = present if on_cpu else [*present, "gpu"]
        yield (
            begun + 0.3,
            SensorsFound(
                name, sensors, absent, about_of(world), machines.cores, announced_rates(world)
            ),
        )
    if machines.ranks > 1:
        for at in np.arange(0.4, pace.ends_s, CLOCKS_EVERY_S):
            yield begun + float(at), _clock_offset(world, host, begun + float(at))
    if rank == 0:
        for place, evaluated in zip(pace.evaluated, attempt.evaluations, strict=True):
            yield float(ends[place]) + evaluated.seconds, evaluated
    if is_first_of_host:
        size = sum(recipe.checkpoint_files(config).values())
        seconds = size / WRITE_BYTES_PER_S
        evaluated_places = set(pace.evaluated.tolist())
        for place in pace.saved:
            step = int(pace.steps[place])
            looked_s = world.learning.evaluation_s if int(place) in evaluated_places else 0.0
            at = float(ends[place]) + looked_s + seconds
            if life.state in ("finished", "preempted"):
                at = min(at, begun + pace.ends_s - 0.01)
            if at < begun + pace.ends_s:
                yield at, CheckpointSaved(step, f"step-{step:08d}", size, seconds)
    for rollback, place in zip(life.rollbacks, pace.rolled_back, strict=True):
        what = f"{rollback.why}; back to step {rollback.to:,} with 0.5 times the learning rate"
        yield (
            float(ends[place]) + 1.0,
            Incident(rollback.at, "rollback", what, rollback_step=rollback.to, rate_factor=0.5),
        )
    for place in np.flatnonzero(np.isin(pace.steps, world.learning.skipped)):
        what = "gradients were not finite; the update was skipped"
        yield (
            attempt.begun_s + float(pace.end[rank, place]) + 1e-4,
            Incident(int(pace.steps[place]), "update-skipped", what),
        )
    # Of a failure one rank tells; otherwise all say that it is over.
    if life.state in ("finished", "preempted") or (life.state == "failed" and rank == 0):
        last_step = int(pace.steps[-1]) if len(pace.steps) else life.first_step - 1
        reason = life.reason or f"training.steps = {config.training.steps or 0:,} are done"
        cause = life.cause or _USUAL_CAUSE[life.state]
        culprit, host = life.culprit or (None, "")
        ended = AttemptEnded(
            *(last_step, life.state, reason, cause, culprit, host, life.could_not_write)
        )
        yield begun + pace.ends_s, ended


def _clock_offset(world: World, host: int, at: float) -> ClockOffset:
    (wall, first_wall), (monotonic, first) = (
        [clock[0] for clock in clocks]
        for clocks in zip(
            clocks_of(world, host, np.array([at])), clocks_of(world, 0, np.array([at])), strict=True
        )
    )
    # A round trip bounds the offset to half of what the way takes.
    error_s = 0.0 if host == 0 else 1e-4 + world.link.latency_s
    return ClockOffset(
        world.machines.hosts[host], float(wall - first_wall), float(monotonic - first), error_s
    )


def clocks_of(world: World, host: int, at: Floats) -> tuple[Floats, Floats]:
    """What wall and monotonic clock of a host show."""
    ahead = world.clocks.ahead_s[host % len(world.clocks.ahead_s)]
    wall = world.began_at + ahead + at
    for jumps_at, jumper, by_s in world.clocks.jumps:
        if jumper == host:
            wall = wall + by_s * (at >= jumps_at)
    return wall, MONOTONIC_AT[host % len(MONOTONIC_AT)] + at


def saves_of(config: Config, attempt: Attempt) -> list[tuple[float, CheckpointSaved]]:
    events = _single_events(config, replace(attempt, begun_s=0.0), 0)
    return [(at, event) for at, event in events if isinstance(event, CheckpointSaved)]
