"""Small runs on CPUs whose processors are as busy as a test says."""

from collections.abc import Callable, Mapping, Sequence

from unit.diagnosis.speed_run import with_parts, write_steps
from unit.report.fake_run import FakeRun

from dragoman.telemetry.events import Event, SensorReading, SensorsFound

OfSecond = Callable[[int, int], float]
"""Of a rank, which is also its host, and a second."""
CORES = 4


def loaded_run(
    run: FakeRun,
    busy: OfSecond,
    own: OfSecond,
    load: OfSecond = lambda rank, second: second / 100 + rank,
    steal: float = 0.0,
    cores: int | None = CORES,
    more: Callable[[int, int], Mapping[str, object]] = lambda rank, number: {},
    also: Sequence[tuple[float, Event]] = (),
) -> FakeRun:
    """Writes a run of two hosts, whose ranks use `own` and whose processors are `busy`, in percent
    of all cores; no host reads the ranks of the other."""

    def beside(rank: int, end: float) -> list[tuple[float, Event]]:
        found = SensorsFound(f"host-{rank}", ["processor"], {}, cores=cores)
        readings = []
        for second in range(11, int(end)):
            values = {
                "cpu/percent": busy(rank, second),
                "cpu/steal_percent": steal,
                "cpu/load": load(rank, second),
                f"rank/{rank}/cpu_percent": CORES * own(rank, second),
            }
            readings.append((float(second), SensorReading(values)))
        return [(1.0, found), *also, *readings]

    return write_steps(run, lambda *_: with_parts(), more=more, beside=beside)
