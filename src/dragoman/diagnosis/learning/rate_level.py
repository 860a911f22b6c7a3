"""Whether a learning rate is higher than what Transformers are known to bear. Pure.

A rate that is stable falls with the root of the model's width and with the root of the steps of its
warm-up: rate = scale / sqrt(width x warm-up steps). Scales from 0.5 to 2 are in common use. Muon's
rates are on the scale of AdamW's: its updates are made as large as those of AdamW usually are.
"""

import math
from typing import NamedTuple

from dragoman.config import Config
from dragoman.training.schedule import learning_rate

USUAL_SCALE = 2.0
"""The largest in common use: Tensor2Tensor's Transformer base, with 8,000 steps of warm-up. The
Transformer paper has 1.0, with 4,000."""
FIRST_STEP = 1000
"""A peak before it is soon over; what counts then is the rate that is left at this step."""
HIGH = 2.0
"""Times the usual: high enough to be the cause of what went wrong."""
FAR_TOO_HIGH = 5.0
"""Times the usual: wrong, unless the run shows that it does no harm."""


class RateLevel(NamedTuple):
    step: int
    """Where the rate is compared: its peak, or a little later if that comes very early."""
    rate: float
    usual: float
    """The highest in common use for this width and step."""

    @property
    def times_usual(self) -> float:
        return self.rate / self.usual


def rate_level_of(config: Config) -> RateLevel:
    last_step = config.training.steps
    early = FIRST_STEP if last_step is None else min(FIRST_STEP, max(1, last_step // 4))
    step = max(1, config.schedule.warmup_steps, early)
    rate = learning_rate(config.schedule, config.model.width, last_step)(step)
    if config.optimizer.kind == "muon":
        rate *= max(1.0, config.optimizer.muon_rate_factor)  # AdamW's own, or the higher of Muon's
    usual = USUAL_SCALE / math.sqrt(config.model.width * max(step, FIRST_STEP))
    return RateLevel(step, rate, usual)


def rate_setting(config: Config) -> str:
    """Returns the key that sets how high the rate is."""
    return "schedule.scale" if config.schedule.kind == "noam" else "schedule.peak"


def lower_rate(config: Config) -> dict[str, object]:
    """Returns the setting of a lower rate: a usual one, or half of what it is if that is less."""
    key = rate_setting(config)
    now = config.schedule.scale if key == "schedule.scale" else config.schedule.peak
    return {key: float(f"{now / max(2.0, rate_level_of(config).times_usual):.2g}")}
