"""Small runs of several ranks whose steps take what a test says."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.diagnosis.run.facts import RunFacts, read_facts
from dragoman.telemetry.events import Event

Parts = Mapping[str, float]
USUAL: Parts = {
    "data": 0.01,
    "forward": 0.3,
    "backward": 0.6,
    "communication": 0.05,
    "checkpoint": 0.0,
    "optimizer": 0.02,
    "rest": 0.005,
}


def with_parts(**changes: float) -> Parts:
    return {**USUAL, **changes}


def write_steps(
    run: FakeRun,
    parts_of: Callable[[int, int], Parts],
    ranks: int = 2,
    steps: int = 60,
    more: Callable[[int, int], Mapping[str, object]] = lambda rank, number: {},
    beside: Callable[[int, float], Sequence[tuple[float, Event]]] = lambda rank, end: (),
) -> FakeRun:
    """`parts_of`, `more`: of a rank and a step; `beside`: of a rank and the end, other events."""
    for rank in range(ranks):
        at = 10.0
        events: list[tuple[float, Event]] = [(0.0, started(rank=rank, ranks=ranks))]
        for number in range(1, steps + 1):
            parts = dict(parts_of(rank, number))
            at += sum(parts.values())
            own = {"parts_s": parts, **more(rank, number)}
            events.append((at, step(number, sum(parts.values()), **own)))
        events += beside(rank, at)
        run.with_events(sorted(events, key=lambda event: event[0]), rank=rank)
    return run


def read(run: FakeRun, read_s_after_start: float = 100_000.0) -> RunFacts:
    return read_facts(run.directory, read_at=WALL_AT + read_s_after_start)


def new_run(folder: Path) -> FakeRun:
    return FakeRun(folder / "run")
