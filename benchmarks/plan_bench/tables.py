"""Errors of forecasts as Markdown. Pure."""

import statistics
from collections.abc import Mapping

from plan_bench.combinations import Combination
from plan_bench.measure import Outcome

AIMS = {"check": (0.05, 0.25, 0.9), "assume": (0.10, 0.25, 0.9)}
"""Calibration -> most median error, most error, least share of intervals with the truth."""


def table(outcomes: Mapping[Combination, Outcome]) -> str:
    lines = [
        "| model | nodes | link | sync | forecast, s | interval | measured, s | error, % | inside "
        "| computing: forecast, measured | exposed: forecast, measured |",
        "|---|---:|---|---|---:|---|---:|---:|---|---|---|",
    ]
    for one, found in outcomes.items():
        lines.append(
            f"| {one.model} | {one.nodes} | {one.link} | {one.sync} | {found.forecast_s:.3f} "
            f"| {found.low_s:.3f} to {found.high_s:.3f} | {found.measured_s:.3f} "
            f"| {100 * found.error:+.1f} | {'yes' if found.contains_truth else 'no'} "
            f"| {found.compute_forecast_s:.3f}, {found.compute_s:.3f} "
            f"| {found.exposed_forecast_s:.3f}, {found.exposed_s:.3f} |"
        )
    return "\n".join(lines)


def summary(outcomes: Mapping[Combination, Outcome], calibration: str) -> str:
    """Returns median, worst and how many intervals contain the truth, beside the aims."""
    errors = [abs(found.error) for found in outcomes.values()]
    inside = sum(found.contains_truth for found in outcomes.values())
    median, worst = statistics.median(errors), max(errors)
    most_median, most, least = AIMS[calibration]
    return (
        f"{len(errors)} combinations, calibrated by {calibration}: median error {median:.1%} (aim "
        f"{most_median:.0%}), worst {worst:.1%} (aim {most:.0%}), {inside} of {len(errors)} "
        f"intervals contain the truth (aim {least:.0%})."
    )
