"""How evenly the work of a step is shared out, and whether that alone makes ranks wait. Pure.

A step's micro-batches are given out whole: four of them on three ranks make one rank compute twice
as long as the others, on hosts that are equally fast.
"""

from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import or_zero
from dragoman.telemetry.read.tables import Array, group_column

EXPLAINS = 0.6
"""Of the waiting: so much follows from the shares alone."""
NEARLY_MOST = 0.95
"""Of the largest share in a step: as good as the largest."""
WORTH_A_WORD = 0.10
"""More than the mean share of the work."""


class WorkShares(NamedTuple):
    """Positions with padding, of the last attempt's steps; ranks that recorded none are absent."""

    by_rank: dict[int, float]
    """In the mean step."""
    spread: float
    """The largest share less the smallest, in the mean over the steps."""
    of_waiting: float
    """Of all waiting for the last rank: that rank had most of the work of the step."""
    padded_tokens: float
    """Of all ranks together, of the longer side."""

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.by_rank.values()))) if self.by_rank else 0.0

    def waiting_s(self, split: StepSplit) -> float:
        """Returns what ranks of equal speed would wait for the one with most work."""
        return split.busy_s * self.spread / self.mean if self.mean else 0.0

    def explain(self, split: StepSplit) -> bool:
        """Returns whether most of the straggling comes from how the work is shared out. A host that
        is late with little work is slow, however uneven the shares are."""
        straggling_s = or_zero(split.straggling_s)
        is_uneven = self.spread > WORTH_A_WORD * self.mean and self.of_waiting >= EXPLAINS
        return is_uneven and self.waiting_s(split) >= EXPLAINS * straggling_s > 0


def work_shares(run: RunFacts) -> WorkShares:
    last = run.attempts[-1].number if run.attempts else 0
    parts = run.step_parts
    rows = np.flatnonzero(parts.attempt == last)
    positions: dict[int, Array] = {}
    longer: list[float] = []
    for rank, steps in run.steps_by_rank.items():
        own = steps.where((steps["attempt"] == last) & np.isin(steps["step"], parts.step[rows]))
        values = group_column(own, "counts", "positions")
        if len(values) and not np.isnan(values).any():
            positions[rank] = values
            sides = [group_column(own, "counts", f"{side}_tokens") for side in ("source", "target")]
            source, target = (float(np.nansum(side)) for side in sides)
            longer.append(float(values.mean()) * max(source, target) / max(1.0, source + target))
    if not positions:
        return WorkShares({}, 0.0, 0.0, 0.0)
    together = np.stack(list(positions.values()))
    waits_s = np.nan_to_num(np.stack([parts.waits_s[rank][rows] for rank in positions]))
    of_last = together[waits_s.argmin(axis=0), np.arange(len(rows))]
    straggling_s = waits_s.max(axis=0)
    had_most = of_last >= NEARLY_MOST * together.max(axis=0)
    waited_s = float(straggling_s.sum())
    return WorkShares(
        {rank: float(values.mean()) for rank, values in positions.items()},
        spread=float(np.ptp(together, axis=0).mean()),
        of_waiting=float(straggling_s[had_most].sum()) / waited_s if waited_s else 0.0,
        padded_tokens=sum(longer),
    )
