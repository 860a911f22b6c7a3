"""Plots of what the sensors of each host measured over time."""

from collections.abc import Sequence

from dragoman.report.content import HostCurve
from dragoman.report.document import Chart, Line
from dragoman.report.sections.steps import megabytes


def gpu_utilization(curves: Sequence[HostCurve]) -> Chart | None:
    title = "GPU, as the driver tells it: busy also while it waits for others"
    return _utilization(curves, title, "gpu ")


def cpu_utilization(curves: Sequence[HostCurve]) -> Chart | None:
    return _utilization(curves, "CPU, all cores of a host", "cpu")


def memory(curves: Sequence[HostCurve]) -> Chart | None:
    return _utilization(curves, "Memory in use", "memory")


def network_throughput(curves: Sequence[HostCurve]) -> Chart | None:
    sent, received = (
        [curve for curve in curves if curve.sensor == f"network {way}" and curve.at]
        for way in ("sent", "received")
    )
    if not sent and not received:
        return None
    colors = {curve.host: place for place, curve in enumerate(sent or received)}
    lines = [
        Line(
            f"{curve.host} sent",
            curve.at,
            megabytes(curve.mean),
            megabytes(curve.lowest),
            megabytes(curve.highest),
            color=colors[curve.host],
        )
        for curve in sent
    ]
    # Two bands a host, one over the other, would hide more than they show.
    lines += [
        Line(
            f"{curve.host} received",
            curve.at,
            megabytes(curve.mean),
            color=colors.get(curve.host),
            style="dashed",
        )
        for curve in received
    ]
    return Chart("Network of each host", "MB/s", ",.2f", lines, axis="time", spread="band")


def _utilization(curves: Sequence[HostCurve], title: str, kind: str) -> Chart | None:
    lines = [
        Line(
            curve.host
            if curve.sensor == kind
            else f"{curve.host} {curve.sensor.removesuffix(' utilization')}",
            curve.at,
            curve.mean,
            curve.lowest,
            curve.highest,
        )
        for curve in curves
        if curve.sensor.startswith(kind) and curve.at
    ]
    if not lines:
        return None
    return Chart(title, "%", ".0f", lines, axis="time", spread="band")
