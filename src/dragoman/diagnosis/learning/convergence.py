"""What more training would bring: a learning curve comes in, a forecast with intervals goes out.

Pure. The forecast is a power law through the end of the validation loss, checked against a plain
line through its newest part: losses fall ever more slowly, so the next stretch brings no more than
the last one did. BLEU follows from how it went with the loss in the same run.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dragoman.diagnosis.findings import Confidence
from dragoman.diagnosis.learning.power_law import (
    Estimate,
    Numbers,
    PowerLaw,
    change_per,
    fit_end,
    slope_of,
)

NEXT_SHARE = 0.25
"""How much further the forecast looks: so many more tokens than so far, as a share."""
WORTH_NATS = 0.005
"""What the next quarter must bring to be worth it: half a percent of perplexity, less than
translations of a few thousand sentences can show in BLEU."""
UNSURE_NATS = 3 * WORTH_NATS
"""What it must not bring, by its interval, where a run is called trained."""
SURE_POINTS = 10
BLEU_WORTH = 0.2
"""BLEU that still rises by this much surely, over the next quarter, outweighs a loss at rest."""
_NEWEST = 2 / 3
"""Where the newest part begins, as a share of all tokens."""

_VERY_LAST = 0.85

Verdict = Literal["yes", "not yet", "too early to say"]


@dataclass(frozen=True)
class Outlook:
    fit: PowerLaw
    now: float
    """How many times the tokens of the last point that was used there are."""
    trend: Estimate | None
    """How the loss changes over NEXT_SHARE more tokens, by a line through its newest part; None:
    too few points there, or the rate falls so fast that it says nothing."""
    is_at_rest: bool
    """Over the very last stretch the loss has not fallen by anything that is worth it, or not by
    more than chance. Says little where the rate is high, and all there is where it has ended."""
    bleu_trend: Estimate | None
    bleu_per_nat: Estimate | None
    """None: not known, or not to be told from none at all."""

    def gain(self, share: float = NEXT_SHARE) -> Estimate:
        gain = self.fit.gain(share, self.now)
        if self.trend is None:
            return gain
        scale = math.log1p(share) / math.log1p(NEXT_SHARE)
        most = max(0.0, -self.trend.low) * scale
        value = min(gain.value, most)
        return Estimate(value, min(gain.low, value), max(value, min(gain.high, most)))

    def bleu_gain(self, share: float = NEXT_SHARE) -> Estimate | None:
        if self.bleu_per_nat is None:
            return None
        gain, slope = self.gain(share), self.bleu_per_nat
        value = -slope.value * gain.value
        half = 1.96 * math.hypot(slope.error * gain.value, slope.value * gain.error)
        return Estimate(value, max(0.0, value - half), value + half)

    @property
    def bleu_still_rises(self) -> bool:
        return self.bleu_trend is not None and self.bleu_trend.low > BLEU_WORTH


def outlook_of(
    tokens: Numbers, losses: Numbers, bleu: Numbers, is_steady: np.typing.NDArray[np.bool_]
) -> Outlook | None:
    """`is_steady`: where the learning rate was high enough that its fall is not what is seen.

    None: too few evaluations.
    """
    fit = fit_end(tokens[is_steady], losses[is_steady])
    if fit is None:
        return None
    newest = tokens >= _NEWEST * tokens[-1]
    scored = np.isfinite(bleu)
    factor = 1 + NEXT_SHARE
    return Outlook(
        fit=fit,
        now=float(tokens[-1] / tokens[is_steady][-1]),
        trend=change_per(factor, tokens[newest], losses[newest]) if is_steady.all() else None,
        is_at_rest=_is_at_rest(tokens, losses),
        bleu_trend=change_per(factor, tokens[newest & scored], bleu[newest & scored]),
        bleu_per_nat=_bleu_per_nat(losses[scored], bleu[scored]),
    )


def verdict_of(outlook: Outlook) -> tuple[Verdict, Confidence]:
    """By what the next quarter of tokens brings, and how sure that is."""
    gain = outlook.gain()
    is_sure = outlook.fit.points >= SURE_POINTS
    if gain.low > WORTH_NATS:
        return "not yet", "high" if is_sure else "medium"
    if outlook.bleu_still_rises:
        return "not yet", "medium"
    if gain.high < WORTH_NATS:
        return "yes", "high" if is_sure else "medium"
    if gain.value > WORTH_NATS and gain.low > 0:
        return "not yet", "medium" if gain.value > 2 * WORTH_NATS else "low"
    if gain.value <= WORTH_NATS and gain.high < UNSURE_NATS:
        return "yes", "medium" if is_sure else "low"
    return "too early to say", "low"


def evaluations_missing(outlook: Outlook) -> int:
    """About how many more would settle it: an interval shrinks with the root of their number."""
    gain = outlook.gain()
    distance = max(abs(gain.value - WORTH_NATS), WORTH_NATS)
    times = ((gain.high - gain.low) / 2 / distance) ** 2
    return max(2, math.ceil(outlook.fit.points * min(9.0, times - 1)))


def _is_at_rest(tokens: Numbers, losses: Numbers) -> bool:
    very_last = max(4, int(np.count_nonzero(tokens >= _VERY_LAST * tokens[-1])))
    ended = tokens[-very_last:]
    fall = change_per(float(ended[-1] / ended[0]), ended, losses[-very_last:])
    return fall is None or fall.high >= 0 or fall.value > -WORTH_NATS


def _bleu_per_nat(losses: Numbers, bleu: Numbers) -> Estimate | None:
    """Over the newer half, where that shows anything, else over all."""
    for newest in (len(losses) // 2, 0):
        slope = slope_of(losses[newest:], bleu[newest:]) if len(losses) - newest >= 5 else None
        if slope is not None and slope.high < 0:
            return slope
    return None
