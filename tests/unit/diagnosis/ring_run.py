"""A run of hosts in a ring, one of which has a slow port."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from unit.diagnosis.speed_run import Parts, new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import GBIT_S, traffic_of

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.telemetry.events import Event, SensorReading, SensorsFound

CAP = 5e6
WAYS = ("sent", "received")
FAST = 20


def ring(
    folder: Path,
    capped: Callable[[int], int | None] = lambda number: 1,
    slow_s: float = 8.0,
    hosts: int = 3,
    steps: int = 60,
) -> RunFacts:
    """Writes a run in which, in each step, the host `capped` has a port of 5 MB/s, or none where it
    is None; sensors a second apart note its fastest tenth of a second, and bursts of the others."""

    def parts(rank: int, number: int) -> Parts:
        is_slow = capped(number) is not None
        return with_parts(communication=slow_s if is_slow else 0.02, rest=0.01)

    def factors(rank: int, slow: int | None) -> tuple[float, float]:
        """Of the cap: what a host sends and receives in bursts. The host after the capped one
        receives as evenly as that one sends, the host before it fills a queue."""
        if slow is None:
            return FAST * 4, FAST * 4
        place = (rank - slow) % hosts
        return (1 if place == 0 else 1.1 if place == hosts - 1 else 4), (1 if place < 2 else 4)

    def sensors(rank: int, end: float) -> list[tuple[float, Event]]:
        found = SensorsFound(f"host-{rank}", ["network"], {}, link_bytes_per_s={"eth0": GBIT_S})
        readings: list[tuple[float, Event]] = []
        at = 10.0
        for number in range(1, steps + 1):
            ends = at + sum(parts(rank, number).values())
            sent, received = factors(rank, capped(number))
            for second in np.arange(at + 0.1, ends, 0.9).tolist():
                totals = {f"network/eth0/{way}_bytes_total": CAP * second for way in WAYS}
                peaks = {
                    "network/eth0/sent_peak_bytes_per_s": sent * CAP,
                    "network/eth0/received_peak_bytes_per_s": received * CAP,
                }
                readings.append((second, SensorReading({**totals, **peaks})))
            at = ends
        return [(1.0, found), *readings]

    run = write_steps(
        new_run(folder), parts, ranks=hosts, steps=steps, more=traffic_of(), beside=sensors
    )
    return read(run)
