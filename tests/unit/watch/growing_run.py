"""A run directory whose event files grow while a test goes on."""

from collections.abc import Sequence
from pathlib import Path

from unit.report.fake_run import FakeRun, started, step

from dragoman.rundir import RunDir
from dragoman.telemetry.events import Event, SensorReading, Stamped, to_line

NOW = 1_800_000_000.0
"""Seconds since 1970, where a test needs a present."""
MONOTONIC_AHEAD = NOW - 1000.0


def stamped(at: float, event: Event, wall_ahead_s: float = MONOTONIC_AHEAD) -> Stamped:
    """`at`: seconds before (negative) or after NOW."""
    return Stamped(NOW + at, NOW + at - wall_ahead_s, event)


def new_run(root: Path) -> RunDir:
    run = FakeRun(root).with_manifest().directory
    run.events.mkdir()
    return run


def append(
    run: RunDir, events: Sequence[tuple[float, Event]], attempt: int = 1, rank: int = 0
) -> None:
    lines = "".join(to_line(stamped(at, event)) for at, event in events)
    with run.events_of(attempt, rank).open("a", encoding="utf-8") as file:
        file.write(lines)


def training(
    first: int, last: int, until: float = 0.0, step_s: float = 1.0, **changes: object
) -> list[tuple[float, Event]]:
    """Steps that follow each other, the last of which ends at `until`."""
    return [
        (until - step_s * (last - number), step(number, step_s, **changes))
        for number in range(first, last + 1)
    ]


def start(
    at: float, attempt: int = 1, rank: int = 0, ranks: int = 2, first_step: int = 1
) -> tuple[float, Event]:
    return at, started(attempt, rank, ranks, first_step)


def reading(at: float, **values: float) -> tuple[float, Event]:
    return at, SensorReading({name.replace("__", "/"): v for name, v in values.items()})
