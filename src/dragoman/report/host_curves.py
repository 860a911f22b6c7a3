"""Curves of each host's sensors over time: readings come in, few points go out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors, is_on_one_host
from dragoman.report.content import HostCurve
from dragoman.report.curves import Floats, bins_of, points
from dragoman.telemetry.read.tables import group_column

# Of all curves together, so that the page stays small however many hosts there are.
MOST_POINTS = 12_000
MOST_POINTS_EACH = 400
LEAST_POINTS_EACH = 20


_Sensor: TypeAlias = tuple[str, str, list[tuple[Floats, Floats]]]
"""Its name, its unit, and the instants and values of each attempt."""


def host_curves(run: RunFacts) -> list[HostCurve]:
    is_alone = is_on_one_host(run.attempts)
    found = [(host.host, *s) for host in run.hosts.values() for s in _sensors(host, is_alone)]
    return _curves(found)


def curves_with_memory(hosts: Iterable[HostSensors], is_alone: bool) -> list[HostCurve]:
    """`is_alone`: there is one host, whose workers talk over its loopback. Without sensors that
    have no reading."""
    found = [
        (host.host, *sensor)
        for host in hosts
        for sensor in (*_sensors(host, is_alone), ("memory", "%", _memory(host)))
    ]
    return [curve for curve in _curves(found) if curve.at]


def _curves(found: Sequence[tuple[str, *_Sensor]]) -> list[HostCurve]:
    most = max(LEAST_POINTS_EACH, min(MOST_POINTS_EACH, MOST_POINTS // max(1, len(found))))
    return [_curve(*sensor, most) for sensor in found]


def rates(values: Floats, at: Floats) -> Floats:
    """Returns the rates of a counter per second; NaN for the first, and where it was reset."""
    found = np.full(len(values), np.nan)
    passed_s = np.diff(at)
    with np.errstate(divide="ignore", invalid="ignore"):
        found[1:] = np.where(passed_s > 0, np.diff(values) / passed_s, np.nan)
    found[found < 0] = np.nan
    return found


def _sensors(host: HostSensors, is_alone: bool) -> Iterator[_Sensor]:
    yield "cpu", "%", _readings(host, "cpu/percent")
    for gpu in host.devices("gpu", "utilization_percent"):
        utilization = _readings(host, f"gpu/{gpu}/utilization_percent")
        yield f"gpu {gpu} utilization", "%", utilization
    # Workers of one machine talk over its loopback.
    if interface := host.busiest_interface(with_loopback=is_alone):
        for way in ("sent", "received"):
            counted = _readings(host, f"network/{interface}/{way}_bytes_total")
            yield f"network {way}", "bytes/s", [(at, rates(values, at)) for at, values in counted]


def _memory(host: HostSensors) -> list[tuple[Floats, Floats]]:
    """In percent of all that the host has; what is only cached is available, and does not count."""
    total, available = (_readings(host, f"memory/{name}_bytes") for name in ("total", "available"))
    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            (at, 100 * (1 - free / every))
            for (at, every), (_, free) in zip(total, available, strict=True)
        ]


def _readings(host: HostSensors, name: str) -> list[tuple[Floats, Floats]]:
    return [(table["at"], group_column(table, "values", name)) for table in host.readings]


def _curve(
    host: str, sensor: str, unit: str, attempts: Sequence[tuple[Floats, Floats]], most: int
) -> HostCurve:
    known = [(at[np.isfinite(v)], v[np.isfinite(v)]) for at, v in attempts if np.isfinite(v).any()]
    total = sum(len(at) for at, _ in known)
    pieces = [np.empty((4, 0))]
    for at, values in known:
        if len(pieces) > 1:  # a gap, not a line over the time between two attempts
            pieces.append(np.array([[pieces[-1][0, -1]], [np.nan], [np.nan], [np.nan]]))
        bins = bins_of(len(at), max(1, round(most * len(at) / total)))
        courses = bins.means(values), bins.lowest(values), bins.highest(values)
        pieces.append(np.stack([at[bins.last], *courses]))
    instants, mean, lowest, highest = np.concatenate(pieces, axis=1)
    return HostCurve(
        host=host,
        sensor=sensor,
        unit=unit,
        at=[round(float(moment), 3) for moment in instants],
        mean=points(mean),
        lowest=points(lowest),
        highest=points(highest),
    )
