"""Small runs whose hosts count what passes their network interfaces."""

from collections.abc import Callable, Mapping
from typing import Any

from unit.diagnosis.speed_run import Parts, with_parts, write_steps
from unit.report.fake_run import FakeRun

from dragoman.diagnosis.findings import Finding
from dragoman.telemetry.events import Event, SensorReading, SensorsFound

WIRE_BYTES = 255e6
GBIT_S = 125e6


def figure(finding: Finding, name: str) -> Any:
    return next(figure.value for figure in finding.evidence if figure.name == name)


def traffic_of(
    sent: float = WIRE_BYTES, predicted: float = WIRE_BYTES
) -> Callable[[int, int], Mapping[str, object]]:
    bytes_ = {"sent": sent, "received": sent, "predicted": predicted}
    return lambda rank, number: {"traffic_bytes": bytes_}


def slow_link(
    run: FakeRun,
    network_s: float = 2.0,
    since: int = 1,
    ports: tuple[float, float] = (GBIT_S, GBIT_S),
    rate: float = GBIT_S,
    sent: float = WIRE_BYTES,
    rest_s: Callable[[int], float] = lambda number: 0.005,
) -> FakeRun:
    """Writes a run of two hosts; sensors a second apart see the link at `rate` while it works."""

    def sensors(rank: int, end: float) -> list[tuple[float, Event]]:
        found = SensorsFound(
            f"host-{rank}", ["network"], {}, link_bytes_per_s={"eth0": ports[rank]}
        )
        names = ("network/eth0/sent_bytes_total", "network/eth0/received_bytes_total")
        readings = [
            (float(second), SensorReading(dict.fromkeys(names, rate * second)))
            for second in range(2, int(end))
        ]
        return [(1.0, found), *readings]

    def parts(rank: int, number: int) -> Parts:
        return with_parts(communication=network_s if number >= since else 0.02, rest=rest_s(number))

    return write_steps(run, parts, more=traffic_of(sent, predicted=sent), beside=sensors)
