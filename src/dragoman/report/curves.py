"""Long series made short: a step's figures of a whole run in at most `MAX_POINTS` points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.telemetry.events import StepDone

# More than a screen has pixels for; 300,000 steps then weigh as much as 1,000.
MAX_POINTS = 1000

Points = list[float | None]
Item = TypeVar("Item")


@dataclass(frozen=True)
class StepCurves:
    """Each point stands for some steps in a row: up to `step`, from after the point before.

    None: not a finite number.
    """

    step: list[int]
    training_loss: Points
    """Mean over the target tokens, with dropout and label smoothing."""
    learning_rate: Points
    """Of the last of the steps."""
    tokens_per_s: Points
    mean_step_s: Points
    slowest_step_s: Points
    part_shares: dict[str, Points]
    """Part of a step -> its share of the steps' time."""


def step_curves(steps: Sequence[StepDone]) -> StepCurves:
    if not steps:
        return StepCurves([], [], [], [], [], [], {})
    number = min(len(steps), MAX_POINTS)
    bounds = np.linspace(0, len(steps), number + 1).astype(np.int64)
    first, last = bounds[:-1], bounds[1:] - 1

    def column(values: Sequence[float]) -> NDArray[np.float64]:
        return np.asarray(values, dtype=np.float64)

    def sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(values, first)

    tokens = column([step.tokens for step in steps])
    seconds = column([step.step_s for step in steps])
    loss = column([step.loss for step in steps])
    rate = column([step.learning_rate for step in steps])
    with np.errstate(divide="ignore", invalid="ignore"):
        return StepCurves(
            step=[steps[place].step for place in last],
            training_loss=_points(sums(loss * tokens) / sums(tokens)),
            learning_rate=_points(rate[last]),
            tokens_per_s=_points(sums(tokens) / sums(seconds)),
            mean_step_s=_points(sums(seconds) / (bounds[1:] - first)),
            slowest_step_s=_points(np.maximum.reduceat(seconds, first)),
            part_shares={
                part: _points(
                    sums(column([step.parts_s.get(part, 0.0) for step in steps])) / sums(seconds)
                )
                for part in dict.fromkeys(part for step in steps for part in step.parts_s)
            },
        )


def thinned(items: Sequence[Item], most: int = MAX_POINTS) -> list[Item]:
    """At most `most` of them, evenly spread, the first and the last included."""
    if len(items) <= most:
        return list(items)
    return [items[place * (len(items) - 1) // (most - 1)] for place in range(most)]


def finite(value: float | None) -> float | None:
    """JSON knows no infinity and no NaN, which a run that diverged has plenty of."""
    return value if value is not None and math.isfinite(value) else None


def _points(values: NDArray[Any]) -> Points:
    # Six digits are finer than any plot, and a third of the file.
    return [finite(float(f"{value:.6g}")) for value in values]
