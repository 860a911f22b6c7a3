"""Learning rates as pure functions of the step. Steps count from 1."""

import math
from collections.abc import Callable
from typing import NamedTuple

from dragoman.config import ScheduleSettings, SyncSettings

Rate = Callable[[int], float]
LARGEST_OWN_FACTOR = 2.0
"""Of `own_step_factor` where none is set: that of four islands, the most that were measured."""


def learning_rate(settings: ScheduleSettings, width: int, last_step: int | None) -> Rate:
    """Returns the schedule of a recipe; `last_step` is where cosine and linear end, or the last of
    their tails."""
    warmup, peak, final = settings.warmup_steps, settings.peak, settings.final
    curve_end = settings.tails[0][0] if settings.tails else last_step

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
        assert curve_end is not None, "the config demands training.steps for this schedule"
        return min(1.0, (step - warmup) / max(1, curve_end - warmup))

    if settings.kind == "noam":
        return noam
    after_warmup: dict[str, Rate] = {
        "inverse-square-root": inverse_square_root,
        "cosine": cosine,
        "linear": linear,
        "constant": constant,
    }
    decay = after_warmup[settings.kind]
    tails = tails_of(settings, last_step)

    def with_tails(step: int) -> float:
        if step < warmup:
            return peak * step / warmup
        tail = next((tail for tail in reversed(tails) if step > tail.after_step), None)
        return tail.rate_at(step) if tail else decay(step)

    return with_tails


class TailCurve(NamedTuple):
    """The rate after the end of a cosine or linear schedule: a straight line."""

    after_step: int
    last_step: int
    rate: float
    final: float

    def rate_at(self, step: int) -> float:
        share = min(1.0, (step - self.after_step) / (self.last_step - self.after_step))
        return self.rate + (self.final - self.rate) * share


def tails_of(settings: ScheduleSettings, last_step: int | None) -> list[TailCurve]:
    """Returns the tails of a schedule in their order."""
    begins = [step for step, _ in settings.tails]
    ends = [*begins[1:], last_step or 0]
    return [
        TailCurve(begin, end, rate, settings.final)
        for (begin, rate), end in zip(settings.tails, ends, strict=False)
    ]


class Peak(NamedTuple):
    step: int
    rate: float


def peak_of(settings: ScheduleSettings, width: int, last_step: int | None) -> Peak:
    """Returns where the rate is highest: at the end of the warm-up, or of a shorter run."""
    step = max(1, settings.warmup_steps)
    if last_step is not None:
        step = min(step, last_step)
    return Peak(step, learning_rate(settings, width, last_step)(step))


def own_step_factor(settings: SyncSettings, islands: int) -> float:
    """Returns by what workers multiply the rate of the schedule in steps that they take alone.

    An island computes one of `islands` parts of every batch. Adam and Muon make steps whose length
    does not depend on the batch; of a smaller one less of it is signal and more is noise, which
    cancels in the mean over the islands. So the mean moves by the square root of their number less
    than one step on the whole batch does (Malladi et al. 2022), unless the rate makes up for it.
    """
    if not settings.is_local:
        return 1.0
    return settings.rate_factor or min(math.sqrt(islands), LARGEST_OWN_FACTOR)
