"""What the sensors of each host saw over time, in few points: readings come in, curves go out."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors
from dragoman.report.content import HostCurve
from dragoman.report.curves import bins_of, points
from dragoman.telemetry.read.rows import group_column
from dragoman.telemetry.read.tables import Table

# Of all curves together, so that the page stays small however many hosts there are.
MOST_POINTS = 12_000
MOST_POINTS_EACH = 400
LEAST_POINTS_EACH = 20

Floats = NDArray[np.float64]


class _Stretch(NamedTuple):
    """Of one attempt."""

    at: Floats
    values: Floats


class _Series(NamedTuple):
    host: str
    sensor: str
    unit: str
    stretches: Sequence[_Stretch]


def host_curves(run: RunFacts) -> list[HostCurve]:
    is_alone = len({host for attempt in run.attempts for host in attempt.host_names}) <= 1
    found = [series for host in run.hosts.values() for series in _sensors(host, is_alone)]
    most = max(LEAST_POINTS_EACH, min(MOST_POINTS_EACH, MOST_POINTS // max(1, len(found))))
    return [_curve(series, most) for series in found]


def rates(values: Floats, at: Floats) -> Floats:
    """A second, of a counter; NaN for the first, and where it began anew."""
    found = np.full(len(values), np.nan)
    passed_s = np.diff(at)
    with np.errstate(divide="ignore", invalid="ignore"):
        found[1:] = np.where(passed_s > 0, np.diff(values) / passed_s, np.nan)
    found[found < 0] = np.nan
    return found


def _sensors(host: HostSensors, is_alone: bool) -> Iterator[_Series]:
    yield _Series(host.host, "cpu", "%", _levels(host.readings, "cpu/percent"))
    for gpu in host.devices("gpu", "utilization_percent"):
        levels = _levels(host.readings, f"gpu/{gpu}/utilization_percent")
        yield _Series(host.host, f"gpu {gpu} utilization", "%", levels)
    # Workers of one machine talk over its loopback.
    if interface := host.busiest_interface(with_loopback=is_alone):
        for way in ("sent", "received"):
            counted = _levels(host.readings, f"network/{interface}/{way}_bytes_total")
            speeds = [_Stretch(at, rates(values, at)) for at, values in counted]
            yield _Series(host.host, f"network {way}", "bytes/s", speeds)


def _levels(readings: Sequence[Table], name: str) -> list[_Stretch]:
    return [_Stretch(table["at"], group_column(table, "values", name)) for table in readings]


def _curve(series: _Series, most: int) -> HostCurve:
    curve = HostCurve(series.host, series.sensor, series.unit, [], [], [], [])
    known = [
        _Stretch(at[np.isfinite(values)], values[np.isfinite(values)])
        for at, values in series.stretches
    ]
    total = sum(len(at) for at, _ in known)
    for at, values in known:
        if not len(at):
            continue
        if curve.at:  # a gap, not a line over the time when nobody was there
            curve.at.append(curve.at[-1])
            for course in (curve.mean, curve.lowest, curve.highest):
                course.append(None)
        bins = bins_of(len(at), max(1, round(most * len(at) / total)))
        curve.at.extend(round(float(moment), 3) for moment in at[bins.last])
        curve.mean.extend(points(bins.means(values)))
        curve.lowest.extend(points(bins.lowest(values)))
        curve.highest.extend(points(bins.highest(values)))
    return curve
