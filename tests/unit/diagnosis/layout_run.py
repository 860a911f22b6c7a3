"""Small runs that go on with more hosts or fewer."""

from unit.diagnosis.speed_run import with_parts
from unit.report.fake_run import FakeRun, started, step

from dragoman.telemetry.events import Event


def write_layouts(run: FakeRun, *layouts: tuple[int, float], steps: int = 20) -> FakeRun:
    """Writes an attempt for each of `layouts`: ranks, each on a host of its own, that send a
    megabyte for each of them, and the seconds of forward in their steps."""
    first = 1
    for attempt, (ranks, forward_s) in enumerate(layouts, start=1):
        parts = dict(with_parts(forward=forward_s, communication=0.05 if ranks > 1 else 0.0))
        wire = {"sent": 1e6 * ranks, "received": 1e6 * ranks, "predicted": 1e6 * ranks}
        for rank in range(ranks):
            events: list[tuple[float, Event]] = [(0.0, started(attempt, rank, ranks, first))]
            for place in range(steps):
                own = step(first + place, sum(parts.values()), parts_s=parts, traffic_bytes=wire)
                events.append((10.0 + sum(parts.values()) * (place + 1), own))
            run.with_events(events, attempt, rank)
        first += steps
    return run
