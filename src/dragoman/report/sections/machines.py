"""What the sensors of each host saw over time."""

from collections.abc import Iterable, Sequence
from typing import Literal

from dragoman.report.content import HostCurve, Points, Report
from dragoman.report.document import Block, Chart, Line

_MEGA = 1e6


def devices(report: Report) -> Iterable[Block]:
    of_gpus = [curve for curve in report.hosts if curve.sensor.startswith("gpu ") and curve.at]
    if of_gpus:
        yield _percent("GPU, as the driver tells it: busy also while it waits for others", of_gpus)
    if of_cpus := _of(report, "cpu"):
        yield _percent("CPU, all cores of a host", of_cpus)


def network(report: Report) -> Iterable[Block]:
    sent, received = _of(report, "network sent"), _of(report, "network received")
    if sent or received:
        colors = {curve.host: place for place, curve in enumerate(sent or received)}
        yield Chart(
            title="Network of each host",
            value_title="MB/s",
            number_format=",.2f",
            axis="time",
            spread="band",
            lines=[
                *(_line(curve, f"{curve.host} sent", colors, _MEGA) for curve in sent),
                *(
                    _line(curve, f"{curve.host} received", colors, _MEGA, "dashed")
                    for curve in received
                ),
            ],
        )


def _device(curve: HostCurve) -> str:
    device = curve.sensor.removesuffix(" utilization")
    return curve.host if device == "cpu" else f"{curve.host} {device}"


def _of(report: Report, sensor: str) -> list[HostCurve]:
    return [curve for curve in report.hosts if curve.sensor == sensor and curve.at]


def _percent(title: str, curves: Sequence[HostCurve]) -> Chart:
    return Chart(
        title=title,
        value_title="%",
        number_format=".0f",
        axis="time",
        spread="band",
        lines=[_line(curve, _device(curve), {}, 1.0) for curve in curves],
    )


def _line(
    curve: HostCurve,
    name: str,
    colors: dict[str, int],
    unit: float,
    style: Literal["line", "dashed"] = "line",
) -> Line:
    def scaled(values: Points) -> Points:
        return [None if value is None else value / unit for value in values]

    # Two bands a host, one over the other, would hide more than they show.
    has_band = style == "line"
    return Line(
        name,
        curve.at,
        scaled(curve.mean),
        scaled(curve.lowest) if has_band else (),
        scaled(curve.highest) if has_band else (),
        color=colors.get(curve.host),
        style=style,
    )
