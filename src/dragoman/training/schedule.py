"""Learning rates as pure functions of the step. Steps count from 1."""

import math
from collections.abc import Callable
from typing import NamedTuple

from dragoman.config import ScheduleSettings

Rate = Callable[[int], float]


def learning_rate(settings: ScheduleSettings, width: int, last_step: int | None) -> Rate:
    """Returns the schedule of a recipe; `last_step` is where cosine and linear end."""
    warmup, peak, final = settings.warmup_steps, settings.peak, settings.final

    def noam(step: int) -> float:
        rise = step / (warmup * math.sqrt(warmup)) if warmup else math.inf
        return settings.scale / math.sqrt(width) * min(1 / math.sqrt(step), rise)

    def inverse_square_root(step: int) -> float:
        return peak * math.sqrt(max(1, warmup) / step)

    def cosine(step: int) -> float:
        return final + (peak - final) * (1 + math.cos(math.pi * _share_after(step))) / 2

    def linear(step: int) -> float:
        return peak + (final - peak) * _share_after(step)

    def constant(step: int) -> float:
        return peak

    def _share_after(step: int) -> float:
        """Returns the share of the way from the warm-up to the last step that is done, 0 to 1."""
        assert last_step is not None, "the config demands training.steps for this schedule"
        return min(1.0, (step - warmup) / max(1, last_step - warmup))

    if settings.kind == "noam":
        return noam
    after_warmup: dict[str, Rate] = {
        "inverse-square-root": inverse_square_root,
        "cosine": cosine,
        "linear": linear,
        "constant": constant,
    }
    decay = after_warmup[settings.kind]
    return lambda step: peak * step / warmup if step < warmup else decay(step)


class Peak(NamedTuple):
    step: int
    rate: float


def peak_of(settings: ScheduleSettings, width: int, last_step: int | None) -> Peak:
    """Returns where the rate is highest: at the end of the warm-up, or of a shorter run."""
    step = max(1, settings.warmup_steps)
    if last_step is not None:
        step = min(step, last_step)
    return Peak(step, learning_rate(settings, width, last_step)(step))
