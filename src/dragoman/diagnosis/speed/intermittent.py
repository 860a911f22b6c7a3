"""Whether waiting comes in some steps and not in others: seconds of each step come in. Pure.

A mean step of 2 s may be a link of half the rate, or a link in order that stalls in every third
step; advice and rates differ. What lasts for one phase of the run is no such thing: `phases` finds
that.
"""

from typing import NamedTuple

import numpy as np

from dragoman.telemetry.read.tables import Array

FEWEST_STEPS = 40
FEWEST_BAD_STEPS = 5
LARGEST_SHARE = 0.5
"""Of the steps: what most of them have is usual."""
SMALLEST_SHARE = 0.02
CLEARLY_WORSE = 3.0
"""Spreads of the usual steps between the two kinds, so that the tail of one kind is not two."""
WORTH_A_WORD = 0.15
"""Of a usual step: so much longer is a bad one."""
CARRIES_MOST = 0.5
"""Of all waiting: so much falls into the bad steps."""
FEWEST_TIMES = 4
"""In a row: fewer such times are phases of the run."""


class Intermittent(NamedTuple):
    """Waiting that comes and goes."""

    step_share: float
    """Of the steps: the bad ones."""
    usual_s: float
    """Waiting of the others, the median."""
    bad_s: float
    """Waiting of the bad steps, the median."""
    usual_step_s: float
    """How long the others last, the median."""
    bad_step_s: float
    is_bad: Array
    """A mask of the steps."""


def intermittent(waits_s: Array, step_s: Array) -> Intermittent | None:
    """Returns how the bad steps differ, where some are bad now and then; None: they are alike, or
    change but a few times. `waits_s` and `step_s`: of steps in order."""
    waits_s = np.nan_to_num(waits_s)
    if len(waits_s) < FEWEST_STEPS:
        return None
    is_bad = waits_s > _between_two_kinds(waits_s)
    share = float(is_bad.mean())
    if not SMALLEST_SHARE <= share <= LARGEST_SHARE or is_bad.sum() < FEWEST_BAD_STEPS:
        return None
    usual, bad = waits_s[~is_bad], waits_s[is_bad]
    usual_s, bad_s = float(np.median(usual)), float(np.median(bad))
    usual_step_s, bad_step_s = (float(np.median(step_s[mask])) for mask in (~is_bad, is_bad))
    low, high = np.percentile(usual, [25, 75])
    is_clear = bad_s - usual_s > CLEARLY_WORSE * (high - low)
    is_long = bad_s - usual_s >= WORTH_A_WORD * usual_step_s
    carries_most = (bad - usual_s).sum() >= CARRIES_MOST * waits_s.sum()
    times = int(is_bad[0]) + int((np.diff(is_bad.astype(int)) == 1).sum())
    if not (is_clear and is_long and carries_most) or times < FEWEST_TIMES:
        return None
    return Intermittent(share, usual_s, bad_s, usual_step_s, bad_step_s, is_bad)


def _between_two_kinds(values: Array) -> float:
    """Returns the value that divides them best into two kinds, by the least squares within each
    (Otsu)."""
    ordered = np.sort(values)
    before = np.cumsum(ordered)[:-1]
    lengths = np.arange(1, len(ordered))
    after = ordered.sum() - before
    between = before**2 / lengths + after**2 / (len(ordered) - lengths)
    place = int(np.argmax(between))
    return float(ordered[place] + ordered[place + 1]) / 2
