"""Whether a verdict holds for the whole run or only for some of it, and since when. Pure."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.steps import StepParts, StepSplit
from dragoman.diagnosis.speed.bottleneck import Verdict
from dragoman.telemetry.read.columns import Array

MOST_WINDOWS = 100
FEWEST_STEPS = 10
"""In a window: the mean of fewer jumps about."""
SHORTEST_SHARE = 0.05
"""Of all steps: what lasts shorter is noise, or a hiccup."""


class Stretch(NamedTuple):
    """Steps in a row that have the same verdict."""

    verdict: Verdict
    begin: int
    """Place of its first step, and of the one after its last."""
    end: int


def stretches_of(
    anatomy: StepParts, rows: Array, judge: Callable[[StepSplit, Array, str], Verdict]
) -> list[Stretch]:
    """Places count in `rows`, the steps that are looked at."""
    bounds = np.linspace(0, len(rows), _windows(len(rows)) + 1).astype(np.int64)
    found: list[Stretch] = []
    held = ""
    for begin, end in itertools.pairwise(bounds.tolist()):
        window = rows[begin:end]
        held = judge(anatomy.mean(window), window, held)
        if found and found[-1].verdict == held:
            found[-1] = found[-1]._replace(end=end)
        else:
            found.append(Stretch(held, begin, end))
    shortest = max(FEWEST_STEPS, SHORTEST_SHARE * len(rows))
    return _without_short_ones(found, shortest)


def window_steps(steps: int) -> int:
    """At most so many are judged together."""
    return -(-steps // _windows(steps))


def _windows(steps: int) -> int:
    return max(1, min(MOST_WINDOWS, steps // FEWEST_STEPS))


def _without_short_ones(stretches: Sequence[Stretch], shortest: float) -> list[Stretch]:
    """A short one is given to the one before it, or to the one behind where it is the first."""
    found: list[Stretch] = []
    for stretch in stretches:
        joins = found and (
            found[-1].verdict == stretch.verdict or stretch.end - stretch.begin < shortest
        )
        if joins:
            found[-1] = found[-1]._replace(end=stretch.end)
        elif found and found[-1].end - found[-1].begin < shortest:
            found[-1] = stretch._replace(begin=found[-1].begin)
        else:
            found.append(stretch)
    return found


def change_place(values: Array, begin: int, end: int) -> int:
    """Where between two places the mean of the values changes most: least squares, one step."""
    own = values[begin:end]
    count = len(own)
    if count < 2:
        return begin
    before = np.cumsum(own)[:-1]
    lengths = np.arange(1, count)
    after = own.sum() - before
    between = before**2 / lengths + after**2 / (count - lengths)
    return begin + 1 + int(np.argmax(between))
