"""What the sensors of each host have read while steps were done."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.telemetry.events import SensorReading, SensorsFound
from dragoman.telemetry.read.tables import (
    Array,
    RunTables,
    Table,
    events_at,
    group_column,
    known_mean,
    known_median,
    slices_by_file,
)

LOOPBACK = "lo"


@dataclass(frozen=True)
class HostSensors:
    """The sensors of one host, over all attempts."""

    host: str
    readings: list[Table] = field(default_factory=list)
    """One table of each attempt, in order."""
    cores: int | None = None
    """Logical processors; None: not recorded."""
    link_bytes_per_s: dict[str, float] = field(default_factory=dict)
    """Network interface -> the rate that it announces."""

    def names(self) -> list[str]:
        return list(dict.fromkeys(n for table in self.readings for n in table.groups["values"]))

    def devices(self, group: str, value: str) -> list[str]:
        """Returns the devices of all values named <group>/<device>/<value>."""
        begin, end = f"{group}/", f"/{value}"
        return [
            name.removeprefix(begin).removesuffix(end)
            for name in self.names()
            if name.startswith(begin) and name.endswith(end) and len(name) > len(begin + end)
        ]

    def levels(self, name: str) -> Array:
        """Returns all that was read, without gaps."""
        values = [group_column(table, "values", name) for table in self.readings]
        return _finite(np.concatenate([np.empty(0), *values]))

    def mean(self, name: str) -> float:
        """NaN: never read."""
        return known_mean(self.levels(name))

    def rates(self, name: str) -> Array:
        """Returns what a counter gained a second between each two readings; those that follow each
        other too closely to be counted well are left out."""
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
        """The median time between two readings; NaN: there are not two."""
        passed_s = (np.diff(table["monotonic_at"]) for table in self.readings)
        return known_median(np.concatenate([np.empty(0), *passed_s]))

    def gained(self, name: str) -> float:
        """Returns what a counter has counted."""
        gains = [np.diff(_finite(group_column(t, "values", name))) for t in self.readings]
        together = np.concatenate([np.empty(0), *gains])
        return float(together[together > 0].sum())

    def port_rate(self, interface: str) -> float:
        """Bytes a second that a network interface announces; NaN: it announces none."""
        return self.link_bytes_per_s.get(interface, float("nan"))

    def busiest_interface(self, with_loopback: bool) -> str:
        """Returns the interface that has sent most; empty: none has been read."""
        value = "sent_bytes_total"
        sent = {
            name: self.gained(f"network/{name}/{value}")
            for name in self.devices("network", value)
            if with_loopback or name != LOOPBACK
        }
        return max(sent, key=lambda name: sent[name]) if sent else ""


def host_sensors_of(attempts: Sequence[Attempt], tables: RunTables) -> dict[str, HostSensors]:
    """By host, in the order of the ranks; only what was read in these attempts."""
    read, found = tables[SensorReading], tables[SensorsFound]
    by_number = {attempt.number: attempt for attempt in attempts}
    readings: dict[str, list[Table]] = defaultdict(list)
    for (number, rank), rows in slices_by_file(read).items():
        if attempt := by_number.get(number):
            readings[host_of(attempt, rank)].append(_during_steps(read.where(rows), attempt))
    cores: dict[str, int | None] = {}
    links: dict[str, dict[str, float]] = defaultdict(dict)
    for sensors in events_at(SensorsFound, found, range(len(found))):
        cores[sensors.host] = sensors.cores or cores.get(sensors.host)
        links[sensors.host] |= sensors.link_bytes_per_s
    return {
        host: HostSensors(host, own, cores.get(host), links[host]) for host, own in readings.items()
    }


def is_on_one_host(attempts: Sequence[Attempt]) -> bool:
    return len({host for attempt in attempts for host in attempt.host_names}) <= 1


def host_of(attempt: Attempt, rank: int) -> str:
    return attempt.hosts.get(rank) or f"the host of rank {rank}"


def _during_steps(readings: Table, attempt: Attempt) -> Table:
    """Leaves out what was read while the attempt started and stopped."""
    steps = attempt.steps
    if not len(steps):
        return readings
    begin, end = steps["at"][0] - steps["step_s"][0], steps["at"][-1]
    return readings.where((readings["at"] >= begin) & (readings["at"] <= end))


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]
