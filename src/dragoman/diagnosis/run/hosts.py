"""What the sensors of each host said while steps were done."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.timeline import RunTimeline
from dragoman.telemetry.events import SensorReading, SensorsFound
from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.rows import events_of, files_of, group_column
from dragoman.telemetry.read.tables import Table

LOOPBACK = "lo"


@dataclass(frozen=True)
class HostSensors:
    """Of one host, over all attempts."""

    host: str
    readings: list[Table]
    """One of each attempt, in order."""
    cores: int | None
    """Logical processors; None: not recorded."""
    link_bytes_per_s: dict[str, float]
    """Network interface -> the rate that it announces."""

    def names(self) -> list[str]:
        return list(dict.fromkeys(n for table in self.readings for n in table.groups["values"]))

    def devices(self, group: str, value: str) -> list[str]:
        """Of values named <group>/<device>/<value>."""
        cut = (
            (name.split("/", 1)[0], *name.split("/", 1)[-1].rsplit("/", 1)) for name in self.names()
        )
        return [parts[1] for parts in cut if len(parts) == 3 and parts[::2] == (group, value)]

    def levels(self, name: str) -> Array:
        """All that was read, without gaps."""
        values = [group_column(table, "values", name) for table in self.readings]
        return _finite(np.concatenate([np.empty(0), *values]))

    def mean(self, name: str) -> float:
        """NaN: never read."""
        levels = self.levels(name)
        return float(levels.mean()) if len(levels) else float("nan")

    def rates(self, name: str) -> Array:
        """A second, of a counter, between readings that follow each other closely enough to tell
        and far enough apart to be counted well."""
        found = [np.empty(0)]
        for table in self.readings:
            passed_s = np.diff(table["monotonic_at"])
            gained = np.diff(group_column(table, "values", name))
            usual_s = float(np.median(passed_s)) if len(passed_s) else 0.0
            # A counter that falls was begun anew.
            is_good = (passed_s > usual_s / 2) & (gained >= 0)
            found.append(gained[is_good] / passed_s[is_good])
        return _finite(np.concatenate(found))

    @property
    def reading_s(self) -> float:
        """Between two readings, in the median; NaN: there are not two."""
        passed = [np.empty(0), *(np.diff(table["monotonic_at"]) for table in self.readings)]
        together = np.concatenate(passed)
        return float(np.median(together)) if len(together) else float("nan")

    def gained(self, name: str) -> float:
        """What a counter has counted."""
        gains = [np.diff(_finite(group_column(t, "values", name))) for t in self.readings]
        together = np.concatenate([np.empty(0), *gains])
        return float(together[together > 0].sum())

    def port_rate(self, interface: str) -> float:
        """Bytes a second that a network interface says it can; NaN: it does not say."""
        return self.link_bytes_per_s.get(interface, float("nan"))

    def busiest_interface(self, with_loopback: bool) -> str:
        """That has sent most; empty: none has been read."""
        value = "sent_bytes_total"
        sent = {
            name: self.gained(f"network/{name}/{value}")
            for name in self.devices("network", value)
            if with_loopback or name != LOOPBACK
        }
        return max(sent, key=lambda name: sent[name]) if sent else ""


def host_sensors_of(record: RunRecord, timeline: RunTimeline) -> dict[str, HostSensors]:
    """By host, in the order of the ranks."""
    read, found = record.tables[SensorReading], record.tables[SensorsFound]
    attempts = {attempt.number: attempt for attempt in timeline.attempts}
    readings: dict[str, list[Table]] = defaultdict(list)
    for (number, rank), rows in files_of(read).items():
        attempt = attempts[number]
        table = read.where(rows)  # type: ignore[arg-type]
        readings[host_of(attempt, rank)].append(_during_steps(table, attempt))
    cores: dict[str, int | None] = {}
    links: dict[str, dict[str, float]] = defaultdict(dict)
    for sensors in events_of(SensorsFound, found, range(len(found))):
        cores[sensors.host] = sensors.cores or cores.get(sensors.host)
        links[sensors.host] |= sensors.link_bytes_per_s
    return {
        host: HostSensors(host, own, cores.get(host), links[host]) for host, own in readings.items()
    }


def host_of(attempt: Attempt, rank: int) -> str:
    return attempt.hosts.get(rank) or f"the host of rank {rank}"


def _during_steps(readings: Table, attempt: Attempt) -> Table:
    """Starting and stopping have other levels, and are no part of what steps do."""
    steps = attempt.steps
    if not len(steps):
        return readings
    begin, end = steps["at"][0] - steps["step_s"][0], steps["at"][-1]
    return readings.where((readings["at"] >= begin) & (readings["at"] <= end))


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]
