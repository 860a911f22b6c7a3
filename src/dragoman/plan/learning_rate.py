"""The learning rate that a recipe will run, as points and in words. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.config import ScheduleSettings
from dragoman.training.schedule import learning_rate, peak_of, tails_of

POINTS = 200
BARS = "▁▂▃▄▅▆▇█"


class RateCurve(NamedTuple):
    steps: list[int]
    rates: list[float]
    peak_step: int
    peak_rate: float
    sentences: list[str]


def rate_curve(settings: ScheduleSettings, width: int, last_step: int | None) -> RateCurve:
    """Where the end is not known, the curve ends at five times the warm-up, or 10,000 steps."""
    end = last_step or max(10_000, 5 * settings.warmup_steps)
    rate = learning_rate(settings, width, last_step)
    peak = peak_of(settings, width, last_step)
    count = min(POINTS, end)
    steps = sorted({1 + (end - 1) * place // max(1, count - 1) for place in range(count)})
    steps = sorted({*steps, peak.step})
    return RateCurve(
        steps,
        [rate(step) for step in steps],
        peak.step,
        peak.rate,
        explanation(settings, width, last_step, peak.step, peak.rate, rate(end)),
    )


def explanation(
    settings: ScheduleSettings,
    width: int,
    last_step: int | None,
    peak_step: int,
    peak_rate: float,
    last_rate: float,
) -> list[str]:
    """Returns what the curve does, and which keys make it so."""
    warmup = settings.warmup_steps
    rises = (
        f"The rate rises in a straight line for {warmup:,} steps (schedule.warmup_steps) to its "
        f"peak of {peak_rate:.3g} at step {peak_step:,}."
        if warmup > 1
        else f"The rate is at its peak of {peak_rate:.3g} from the first step on: "
        f"schedule.warmup_steps = {warmup}."
    )
    if last_step is not None and last_step <= warmup:
        return [
            f"The run ends at step {last_step:,}, within the warm-up of {warmup:,} steps "
            f"(schedule.warmup_steps): the rate only rises, to {peak_rate:.3g}. Shorten the "
            "warm-up, or train longer."
        ]
    tails = tails_of(settings, last_step)
    ends = f" to {last_rate:.3g} at the last step, {last_step:,}" if last_step else ""
    if tails:
        ends = f" to {settings.final:.3g} at step {tails[0].after_step:,}"
    after = {
        "noam": f"Then it falls with the inverse square root of the step{ends}. This is "
        f"schedule.kind = noam; schedule.scale = {settings.scale:g} is a scale and not a rate: "
        f"the peak is scale / sqrt(width x warmup_steps) = {settings.scale:g} / sqrt({width} x "
        f"{warmup:,}).",
        "inverse-square-root": f"Then it falls with the inverse square root of the step{ends}. "
        f"schedule.peak = {settings.peak:g} is the rate at the end of the warm-up.",
        "cosine": f"Then it falls in half a cosine{ends}: slowly, fast, slowly. schedule.peak = "
        f"{settings.peak:g} and schedule.final = {settings.final:g} are its ends.",
        "linear": f"Then it falls in a straight line{ends}. schedule.peak = {settings.peak:g} and "
        f"schedule.final = {settings.final:g} are its ends.",
        "constant": f"Then it stays there: schedule.kind = constant, with schedule.peak = "
        f"{settings.peak:g}.",
    }[settings.kind]
    anew = [
        f"After step {tail.after_step:,} it falls anew, from {tail.rate:.3g} to {tail.final:.3g} "
        f"at step {tail.last_step:,} (schedule.tails)."
        for tail in tails
    ]
    return [
        rises,
        after,
        *anew,
        "It follows the step alone, and no loss: nothing lowers it on a plateau.",
    ]


def sparkline(values: Sequence[float], columns: int) -> str:
    """Returns a line of bars, each the mean of its part of the values."""
    highest = max(values)
    bars = []
    for column in range(columns):
        begin = column * len(values) // columns
        part = values[begin : max(begin + 1, (column + 1) * len(values) // columns)]
        share = sum(part) / len(part) / highest if highest else 0.0
        bars.append(BARS[min(len(BARS) - 1, int(share * len(BARS)))])
    return "".join(bars)
