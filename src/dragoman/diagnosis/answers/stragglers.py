"""Which host, or which rank, the others wait for, and for how long."""

from collections.abc import Sequence

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import listed, percent, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS, Late, data_makes_late, shares_of
from dragoman.diagnosis.speed.lateness import (
    WORTH_NAMING,
    WaitedFor,
    because_of_data,
    late_of,
    names_of_ranks,
    waited_for,
    waits_by_attempt,
    whose_waiting,
)

NOTABLE_SHARE = 0.05
"""Of the step, for one that is always the last."""
NOTABLE_SHARE_IN_TURN = 0.10
"""Chance alone makes some rank the last of each step."""


def answer(run: RunFacts) -> Finding | None:
    """Returns None where no rank waits for another for long."""
    steps = run.step_parts
    rows = np.flatnonzero(steps.usual)
    if not len(rows):
        return None
    split = steps.mean(rows)
    share = shares_of(split).straggling
    waits = waits_by_attempt(steps, names_of_ranks(run.attempts), rows)
    late = late_of(waits)
    if not share >= (NOTABLE_SHARE if late.is_always_the_same else NOTABLE_SHARE_IN_TURN):
        return None
    total_s = float(np.nansum(steps["straggling_s"][rows]))
    named = [one for one in waited_for(waits) if one.share >= WORTH_NAMING]
    return Finding(
        verdict=_verdict(late),
        confidence="high" if len(rows) >= FEW_STEPS else "low",
        sentence=_sentence(late, named, share, split),
        evidence=[
            Figure("waiting for the slowest rank", split.straggling_s, "s", note="of a mean step"),
            Figure("share of the step", share, "share"),
            Figure("waited in the whole run", total_s, "s"),
            *(Figure(f"for {one.who}", one.share, "share", note=_often(one)) for one in named),
        ],
        advice=advice.on_lateness(late, split),
    )


def _verdict(late: Late) -> str:
    if late.is_always_the_same:
        return late.who
    return f"all but {late.early}" if late.early else "several in turn"


def _sentence(late: Late, named: Sequence[WaitedFor], share: float, split: StepSplit) -> str:
    waited = f"{seconds(split.straggling_s)} ({percent(share)})"
    if late.is_always_the_same:
        how = "they are late whenever somebody is" if late.are_several else f"it is {_often(late)}"
        why = because_of_data(late) if data_makes_late(split) else ""
        return f"In the mean step the others wait {waited} for {late.who}{why}; {how}."
    if late.early:
        return f"{whose_waiting(late)}: {waited} of the mean step."
    each = [f"{one.who} ({percent(one.share)} of the waiting)" for one in named]
    why = ", mostly because data comes late" if data_makes_late(split) else ""
    return f"In the mean step ranks wait {waited} for each other, in turn for {listed(each)}{why}."


def _often(one: WaitedFor | Late) -> str:
    return f"the last in {percent(one.step_share)} of the steps"
