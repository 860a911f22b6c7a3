"""How long a run still takes: the pace of its last minutes comes in, seconds with an interval go
out. Pure."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from dragoman.config import TrainingSettings
from dragoman.diagnosis.estimate import Estimate
from dragoman.telemetry.events import StepDone

MOST_BLOCKS = 12
"""Long enough to be nearly independent of each other, and enough of them to see their scatter."""
FEWEST_BLOCKS = 3
# Student's t that bounds a 95 % interval on each side, by degrees of freedom from 1 to MOST_BLOCKS
# less 1: to import SciPy for it would take longer than all else of an update.
T_97_5 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201)


class Pace(NamedTuple):
    """Steps in a row, and how long they took together."""

    steps: int
    seconds: float


def time_left(paces: Sequence[Pace], steps: int, more_s: float = 0.0) -> Estimate | None:
    """Returns the seconds that this many steps take, and `more_s` for what comes between them.

    Neighboring steps resemble each other, so the scatter is that of blocks of them: it widens the
    interval once for what is not known of the mean, and once for how the steps to come will vary.
    The interval is without width where there are too few blocks. None: no pace is known.
    """
    blocks = _blocks(paces)
    done = sum(block.steps for block in blocks)
    if not done:
        return None
    mean_s = math.fsum(block.seconds for block in blocks) / done
    expected_s = steps * mean_s + more_s
    degrees = len(blocks) - 1
    if degrees + 1 < FEWEST_BLOCKS:
        return Estimate(expected_s, expected_s, expected_s)
    squares = math.fsum((block.seconds - mean_s * block.steps) ** 2 for block in blocks)
    # Of one step, with what it shares with its neighbors.
    variance = (degrees + 1) / degrees * squares / done
    half = T_97_5[degrees - 1] * math.sqrt(variance * (steps**2 / done + steps))
    return Estimate(expected_s, max(more_s, expected_s - half), expected_s + half)


def last_step(settings: TrainingSettings, done: StepDone | None) -> int | None:
    """Returns where training.steps or training.epochs end a run; None: neither of them is known to.

    `done`: any step, which tells how many an epoch has.
    """
    ends = [] if settings.steps is None else [settings.steps]
    if settings.epochs is not None and done and done.epoch > 0:
        ends.append(round(settings.epochs * done.step / done.epoch))
    return min(ends, default=None)


def at_most(left: Estimate | None, most_s: float) -> Estimate:
    """Returns the time left of a run that ends after `most_s` in any case."""
    if left is None:
        return Estimate(most_s, most_s, most_s)
    return Estimate(min(left.value, most_s), min(left.low, most_s), min(left.high, most_s))


def evaluations_left(step: int, last_step: int, every_steps: int) -> int:
    """Returns how many there are after `step`: every so many steps, and after the last."""
    if last_step <= step:
        return 0
    return last_step // every_steps - step // every_steps + bool(last_step % every_steps)


def _blocks(paces: Sequence[Pace]) -> list[Pace]:
    """Returns the paces that hold steps, neighbors joined until they are few."""
    own = [pace for pace in paces if pace.steps]
    count = min(MOST_BLOCKS, len(own))
    bounds = [len(own) * place // count for place in range(count + 1)] if count else [0]
    return [
        Pace(sum(p.steps for p in part), math.fsum(p.seconds for p in part))
        for part in (own[begin:end] for begin, end in pairwise(bounds))
    ]
