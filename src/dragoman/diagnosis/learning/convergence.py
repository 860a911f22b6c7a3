"""What more training would bring: a learning curve comes in, a forecast with intervals goes out.

Pure. The forecast is a power law through the end of the validation loss, bounded by a plain line
through its newest part: losses fall ever more slowly, so the next part brings no more than the last
one did. BLEU follows from how it went with the loss in the same run; its interval is for what an
evaluation will measure, with the noise of evaluations in it.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dragoman.config import Config
from dragoman.diagnosis.estimate import Z_95, Estimate
from dragoman.diagnosis.findings import Confidence
from dragoman.diagnosis.learning.power_law import LEAST_POINTS, PowerLaw, fit_end
from dragoman.diagnosis.learning.robust_fit import Floats, change_per, slope_of, t_97_5
from dragoman.training.schedule import learning_rate, peak_of

NEXT_SHARE = 0.25
"""How much further the forecast goes: so many more tokens than so far, as a share."""
WORTH_NATS = 0.005
"""What the next quarter must bring to be worth it: half a percent of perplexity, less than
translations of a few thousand sentences can show in BLEU."""
UNSURE_NATS = 3 * WORTH_NATS
"""What it must not bring, by its interval, where a run is called trained."""
SURE_POINTS = 10
BLEU_WORTH = 0.2
"""BLEU that surely rises by this much over the next quarter outweighs a loss at rest."""
STEADY_SHARE = 0.5
"""Of the peak rate: above it, a loss falls by learning and not because the rate falls."""
_NEWEST = 2 / 3
"""Where the newest part begins, as a share of all tokens."""
_VERY_LAST = 0.85
_BLEU_FORM_ERROR = 0.25
"""Of a gain in BLEU, as a share of it: BLEU follows the loss only roughly by a line."""
_MOST_STEEPENING, _UNKNOWN_STEEPENING = 4.0, 2.0
_BLEU_NOISE_SHARE = 0.3
"""Of the error by which other sentences would differ: the least by which BLEU of the same sentences
wavers from one evaluation to the next, however well few points lie on a line."""

Verdict = Literal["yes", "not yet", "too early to say"]


@dataclass(frozen=True)
class Forecast:
    fit: PowerLaw
    now: float
    """All tokens so far, as a multiple of those of the last point that was fitted."""
    trend: Estimate | None
    """How the loss changes over NEXT_SHARE more tokens, by a line through its newest part; None:
    too few points there, or the rate falls so fast that it says nothing."""
    is_at_rest: bool
    """Over the very last part the loss has not fallen by anything that is worth it, or not by more
    than chance. Says little where the rate is high, and is all there is where it has ended."""
    bleu_trend: Estimate | None
    bleu_per_nat: Estimate | None
    """None: not known, or no different from zero."""
    bleu_steepening: float
    """How many times as much a nat may bring next as it did so far: early in a run BLEU takes off
    while the loss falls evenly; at least 1."""
    bleu_noise: float
    """By how much BLEU differs from one evaluation to another at the same loss, one standard
    deviation."""

    def gain(self, share: float = NEXT_SHARE) -> Estimate:
        gain = self.fit.gain(share, self.now)
        if self.trend is None:
            return gain
        scale = math.log1p(share) / math.log1p(NEXT_SHARE)
        most = max(0.0, -self.trend.low) * scale
        value = min(gain.value, most)
        return Estimate(value, min(gain.low, value), max(value, min(gain.high, most)))

    def bleu_gain(self) -> Estimate | None:
        """Returns by how much BLEU will be higher at the evaluation after the next quarter than it
        is at the newest one. The interval is for what is then measured, so the noise of both
        evaluations is part of it."""
        if self.bleu_per_nat is None:
            return None
        gain, slope = self.gain(), self.bleu_per_nat
        value = -slope.value * gain.value
        of_curve = math.hypot(
            slope.error * gain.value, slope.value * gain.error, _BLEU_FORM_ERROR * value
        )
        # Weights that happen to be better have a lower loss and a higher BLEU together.
        of_evaluation = math.hypot(self.bleu_noise, slope.value * self.fit.noise)
        half = Z_95 * math.hypot(of_curve, math.sqrt(2) * of_evaluation)
        steeper = (self.bleu_steepening - 1) * value
        return Estimate(value, value - half, value + math.hypot(half, steeper))

    @property
    def bleu_still_rises(self) -> bool:
        return self.bleu_trend is not None and self.bleu_trend.low > BLEU_WORTH


def forecast_of(
    tokens: Floats,
    losses: Floats,
    bleu: Floats,
    is_steady: npt.NDArray[np.bool_],
    bleu_error: float = math.nan,
) -> Forecast | None:
    """Returns None for too few evaluations. `is_steady`: where the learning rate was so high that
    its fall is not what the loss shows. `bleu_error`: of one score, by resampled sentences."""
    fit = fit_end(tokens[is_steady], losses[is_steady])
    if fit is None:
        return None
    newest = tokens >= _NEWEST * tokens[-1]
    scored = np.isfinite(bleu)
    factor = 1 + NEXT_SHARE
    per_nat, noise = _bleu_per_nat(losses[scored], bleu[scored])
    return Forecast(
        fit=fit,
        now=float(tokens[-1] / tokens[is_steady][-1]),
        trend=change_per(factor, tokens[newest], losses[newest]) if is_steady.all() else None,
        is_at_rest=_is_at_rest(tokens, losses),
        bleu_trend=change_per(factor, tokens[newest & scored], bleu[newest & scored]),
        bleu_per_nat=per_nat,
        bleu_steepening=_steepening(losses[scored], bleu[scored]),
        bleu_noise=max(noise, _BLEU_NOISE_SHARE * np.nan_to_num(bleu_error)),
    )


def verdict_of(forecast: Forecast) -> tuple[Verdict, Confidence]:
    """Returns whether the model is trained, by what the next quarter of tokens brings."""
    gain = forecast.gain()
    is_sure = forecast.fit.points >= SURE_POINTS
    if gain.low > WORTH_NATS:
        return "not yet", "high" if is_sure else "medium"
    if forecast.bleu_still_rises:
        return "not yet", "medium"
    if gain.high < WORTH_NATS:
        return "yes", "high" if is_sure else "medium"
    if gain.value > WORTH_NATS and gain.low > 0:
        return "not yet", "medium" if gain.value > 2 * WORTH_NATS else "low"
    if gain.value <= WORTH_NATS and gain.high < UNSURE_NATS:
        return "yes", "medium" if is_sure else "low"
    return "too early to say", "low"


def evaluations_missing(forecast: Forecast) -> int:
    """Returns about how many more evaluations would settle the verdict: an interval shrinks with
    the root of their number."""
    gain = forecast.gain()
    distance = max(abs(gain.value - WORTH_NATS), WORTH_NATS)
    times = ((gain.high - gain.low) / 2 / distance) ** 2
    return max(2, math.ceil(forecast.fit.points * min(9.0, times - 1)))


def rate_left_of(config: Config, step: int) -> float | None:
    """Returns the share of the way from the peak to the final rate that is left; None for a
    schedule without an end of its own."""
    schedule = config.schedule
    if schedule.kind not in ("cosine", "linear") or config.training.steps is None:
        return None
    rate = learning_rate(schedule, config.model.width, config.training.steps)
    way = schedule.peak - schedule.final
    return (rate(max(1, step)) - schedule.final) / way if way > 0 else 0.0


def is_steady(config: Config, steps: Floats) -> npt.NDArray[np.bool_]:
    """Returns at which steps the rate was high, for schedules that end; all of them for other
    schedules, and where too few would be left."""
    everywhere = np.ones(len(steps), dtype=bool)
    if rate_left_of(config, 1) is None:
        return everywhere
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    peak = peak_of(config.schedule, config.model.width, config.training.steps).rate
    steady = np.array([rate(int(step)) >= STEADY_SHARE * peak for step in steps])
    return steady if steady.sum() >= LEAST_POINTS else everywhere


def _is_at_rest(tokens: Floats, losses: Floats) -> bool:
    very_last = max(4, int(np.count_nonzero(tokens >= _VERY_LAST * tokens[-1])))
    end = tokens[-very_last:]
    fall = change_per(float(end[-1] / end[0]), end, losses[-very_last:])
    return fall is None or fall.high >= 0 or fall.value > -WORTH_NATS


def _bleu_per_nat(losses: Floats, bleu: Floats) -> tuple[Estimate | None, float]:
    """Returns the slope over the newer half, where that is clear, else over all, and the standard
    deviation around it, larger where few points show it."""
    for first in (len(losses) // 2, 0):
        slope = slope_of(losses[first:], bleu[first:]) if len(losses) - first >= 5 else None
        if slope is not None and slope.high < 0:
            around = bleu[first:] - slope.value * losses[first:]
            around -= around.mean()
            degrees = len(around) - 2
            spread = math.sqrt(float(around @ around) / degrees)
            return slope, spread * t_97_5(degrees) / Z_95
    return None, 0.0


def _steepening(losses: Floats, bleu: Floats) -> float:
    """Returns how many times as steep the next part may be as the newer half was, if it goes on as
    the halves of that did; 1 where they do not show it."""
    half, quarter = len(losses) // 2, len(losses) // 4
    parts = (slice(half, half + quarter), slice(half + quarter, None))
    before, last = (slope_of(losses[part], bleu[part]) for part in parts)
    if before is None or last is None:
        return _UNKNOWN_STEEPENING
    if before.value >= 0 or last.high >= 0:
        return 1.0
    return min(_MOST_STEEPENING, max(1.0, last.value / before.value))
