"""The sensors of hosts in the last minutes: readings come in as they are written, curves go out."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.hosts import HostSensors
from dragoman.report.content import HostCurve
from dragoman.report.host_curves import curves_with_memory
from dragoman.telemetry.read.tables import Table, merge_orders
from dragoman.watch.live_rank import WINDOW_S

MOST_READINGS = 1200
_SENSORS = ("cpu/percent", "memory/total_bytes", "memory/available_bytes")
_DEVICE_SENSORS = ("/utilization_percent", "/sent_bytes_total", "/received_bytes_total")


class Reading(NamedTuple):
    at: float
    """On the clock of rank 0."""
    monotonic_at: float
    values: Mapping[str, float]


class LiveSensors:
    """The readings of each attempt and rank within `WINDOW_S`, at most `MOST_READINGS`."""

    def __init__(self) -> None:
        self._readings: dict[tuple[int, int], deque[Reading]] = {}
        self._hosts: dict[tuple[int, int], str] = {}

    def add(self, attempt: int, rank: int, host: str, reading: Reading) -> None:
        readings = self._readings.setdefault((attempt, rank), deque(maxlen=MOST_READINGS))
        readings.append(reading._replace(values=shown(reading.values)))
        at = reading.at
        while readings[0].at < at - WINDOW_S:
            readings.popleft()
        self._hosts[attempt, rank] = host

    def forget(self, attempt: int, rank: int) -> None:
        self._readings.pop((attempt, rank), None)

    def keep(self, attempts: Sequence[int]) -> None:
        """Forgets those of all other attempts."""
        self._readings = {key: own for key, own in self._readings.items() if key[0] in attempts}

    def every_s(self, attempt: int, rank: int) -> float | None:
        """Returns the time between its last two readings; None: there were not two."""
        readings = self._readings.get((attempt, rank))
        if readings is None or len(readings) < 2:
            return None
        return readings[-1].monotonic_at - readings[-2].monotonic_at

    def curves(self, hosts: set[str]) -> list[HostCurve]:
        """`hosts`: those of the run, so that the curves of one that is alone need no name."""
        by_host: dict[str, list[Table]] = {}
        newest_at = max((own[-1].at for own in self._readings.values()), default=0.0)
        for key, readings in sorted(self._readings.items()):
            host = self._hosts.get(key) or f"the host of rank {key[1]}"
            recent = [reading for reading in readings if reading.at >= newest_at - WINDOW_S]
            if recent:
                by_host.setdefault(host, []).append(_table(recent))
        sensors = (HostSensors(host, tables) for host, tables in by_host.items())
        return curves_with_memory(sensors, is_alone=len(hosts | set(by_host)) <= 1)


def _table(readings: Sequence[Reading]) -> Table:
    names = merge_orders(reading.values for reading in (readings[0], readings[-1]))
    return Table(
        {
            "at": np.array([reading.at for reading in readings]),
            "monotonic_at": np.array([reading.monotonic_at for reading in readings]),
        },
        {
            "values": {
                name: np.array([r.values.get(name, math.nan) for r in readings]) for name in names
            }
        },
    )


def shown(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the sensors that the curves need: a host may have hundreds."""
    return {
        sensor: value
        for sensor, value in values.items()
        if sensor in _SENSORS or sensor.endswith(_DEVICE_SENSORS)
    }
