"""Curves of each host's sensors over time: readings come in, few points go out."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors
from dragoman.report.content import HostCurve, Points
from dragoman.report.curves import Floats, bins_of, points
from dragoman.telemetry.read.tables import group_column

# Of all curves together, so that the page stays small however many hosts there are.
MOST_POINTS = 12_000
MOST_POINTS_EACH = 400
LEAST_POINTS_EACH = 20


class _Series(NamedTuple):
    host: str
    sensor: str
    unit: str
    attempts: Sequence[tuple[Floats, Floats]]
    """(instants, values) of each."""


def host_curves(run: RunFacts) -> list[HostCurve]:
    is_alone = len({host for attempt in run.attempts for host in attempt.host_names}) <= 1
    found = [series for host in run.hosts.values() for series in _sensors(host, is_alone)]
    most = max(LEAST_POINTS_EACH, min(MOST_POINTS_EACH, MOST_POINTS // max(1, len(found))))
    return [_curve(series, most) for series in found]


def rates(values: Floats, at: Floats) -> Floats:
    """Returns the rates of a counter per second; NaN for the first, and where it was reset."""
    found = np.full(len(values), np.nan)
    passed_s = np.diff(at)
    with np.errstate(divide="ignore", invalid="ignore"):
        found[1:] = np.where(passed_s > 0, np.diff(values) / passed_s, np.nan)
    found[found < 0] = np.nan
    return found


def _sensors(host: HostSensors, is_alone: bool) -> Iterator[_Series]:
    yield _Series(host.host, "cpu", "%", _readings(host, "cpu/percent"))
    for gpu in host.devices("gpu", "utilization_percent"):
        utilization = _readings(host, f"gpu/{gpu}/utilization_percent")
        yield _Series(host.host, f"gpu {gpu} utilization", "%", utilization)
    # Workers of one machine talk over its loopback.
    if interface := host.busiest_interface(with_loopback=is_alone):
        for way in ("sent", "received"):
            counted = _readings(host, f"network/{interface}/{way}_bytes_total")
            speeds = [(at, rates(values, at)) for at, values in counted]
            yield _Series(host.host, f"network {way}", "bytes/s", speeds)


def _readings(host: HostSensors, name: str) -> list[tuple[Floats, Floats]]:
    return [(table["at"], group_column(table, "values", name)) for table in host.readings]


def _curve(series: _Series, most: int) -> HostCurve:
    instants: list[float] = []
    mean: Points = []
    lowest: Points = []
    highest: Points = []
    known = [(at[np.isfinite(v)], v[np.isfinite(v)]) for at, v in series.attempts]
    total = sum(len(at) for at, _ in known)
    for at, values in known:
        if not len(at):
            continue
        if instants:  # a gap, not a line over the time between two attempts
            instants.append(instants[-1])
            for course in (mean, lowest, highest):
                course.append(None)
        bins = bins_of(len(at), max(1, round(most * len(at) / total)))
        instants += [round(float(moment), 3) for moment in at[bins.last]]
        mean += points(bins.means(values))
        lowest += points(bins.lowest(values))
        highest += points(bins.highest(values))
    return HostCurve(
        host=series.host,
        sensor=series.sensor,
        unit=series.unit,
        at=instants,
        mean=mean,
        lowest=lowest,
        highest=highest,
    )
