"""Why steps of one run differ in length: which part of a step varies with its time. Pure.

Traffic a second is no witness: where the bytes are the same in each step, it is only the step's
time once more, upside down.
"""

import math
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.estimate import Estimate
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepParts
from dragoman.diagnosis.speed.series import FEWEST, correlation, varies
from dragoman.telemetry.read.tables import Array, group_column

PARTS = {
    "compute_s": "computing",
    "network_s": "the network",
    "straggling_s": "waiting for the slowest rank",
    "data_s": "waiting for data",
    "checkpoint_s": "waiting for a checkpoint's copy",
    "rest_s": "what is not timed separately",
}


class StepVariation(NamedTuple):
    """Of usual steps of one layout."""

    steps: int
    scatter: float
    """Of the time of a step: its standard deviation over its mean."""
    shares: dict[str, float]
    """Part, as in `PARTS` -> its share of the variance, the largest first. They add up to about 1;
    a negative one is shorter in longer steps."""
    with_network: Estimate | None
    """Correlation of a step's time with its exposed network time; None: one does not vary, or too
    few steps."""

    @property
    def cause(self) -> str:
        return next(iter(self.shares), "")


class ByteVariation(NamedTuple):
    """Of the bytes that the first host which has counted sends in the same steps."""

    steps: int
    scatter: float
    with_bytes: Estimate | None
    """Correlation of a step's time with its bytes."""


def variation_of(parts: StepParts, rows: Array) -> StepVariation:
    step_s = parts["step_s"][rows]
    if len(rows) < FEWEST or not varies(step_s):
        return StepVariation(len(rows), 0.0, {}, None)
    from_mean = step_s - step_s.mean()
    squares = float(from_mean @ from_mean)
    found = {
        part: float(from_mean @ values) / squares
        for part in PARTS
        if not np.isnan(values := parts[part][rows]).any()
    }
    network_s = parts["network_s"][rows]
    return StepVariation(
        steps=len(rows),
        scatter=float(step_s.std()) / float(step_s.mean()),
        shares=dict(sorted(found.items(), key=lambda item: -item[1])),
        with_network=None if np.isnan(network_s).any() else correlation(step_s, network_s),
    )


def byte_variation_of(run: RunFacts, numbers: Array) -> ByteVariation:
    """`numbers`: of the steps."""
    for table in run.steps_by_rank.values():
        sent = group_column(table, "traffic_bytes", "sent")
        counts = ~np.isnan(sent) & np.isin(table["step"], numbers)
        if counts.sum() > 1:
            sent, step_s = sent[counts], table["step_s"][counts]
            mean = float(sent.mean())
            scatter = float(sent.std()) / mean if mean and varies(sent) else 0.0
            return ByteVariation(len(sent), scatter, correlation(step_s, sent))
    return ByteVariation(0, math.nan, None)
