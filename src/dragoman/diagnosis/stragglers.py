"""Which host, or which rank, the others wait for, and for how long."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.anatomy import Anatomy
from dragoman.diagnosis.attempt import Attempt
from dragoman.diagnosis.bottleneck import ALWAYS_THE_SAME, NOBODY, Late, shares_of
from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.history import History
from dragoman.diagnosis.instruments import host_of
from dragoman.diagnosis.record import RunRecord
from dragoman.diagnosis.wording import listed, percent, seconds
from dragoman.telemetry.columns import Array

KEY = "stragglers"
QUESTION = "Do ranks wait for a slow one?"

WORTH_TELLING = 0.05
"""Of the step, for one that is always the last."""
WORTH_TELLING_OF_MANY = 0.10
"""Chance alone makes some rank the last of each step."""
HAS_A_SHARE = 0.10
"""Of all waiting, to be named."""
FEW_STEPS = 20


class Waited(NamedTuple):
    """For one host, or rank where there is one host."""

    who: str
    share: float
    """Of all waiting for others: so much was for this one."""
    step_share: float
    """Of the steps: so often it came last."""
    waited_s: float
    """In all of these steps together: what the first one waited for it."""


def names_of_ranks(attempts: Sequence[Attempt]) -> dict[tuple[int, int], str]:
    """Attempt and rank -> what to call it: its host, or itself where all are on one host."""
    has_hosts = any(len(attempt.host_names) > 1 for attempt in attempts)
    return {
        (attempt.number, rank): host_of(attempt, rank) if has_hosts else f"rank {rank}"
        for attempt in attempts
        for rank in range(attempt.ranks)
    }


def waited_for(anatomy: Anatomy, names: Mapping[tuple[int, int], str], rows: Array) -> list[Waited]:
    """By whom the others waited for most, first."""
    attempts, ranks = anatomy.attempt[rows], anatomy.last_rank[rows]
    straggling_s = np.nan_to_num(anatomy["straggling_s"][rows])
    steps: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for attempt, rank in set(zip(attempts.tolist(), ranks.tolist(), strict=True)):
        if rank < 0:
            continue
        own = (attempts == attempt) & (ranks == rank)
        who = names.get((attempt, rank), f"rank {rank}")
        steps[who] = steps.get(who, 0) + int(own.sum())
        seconds[who] = seconds.get(who, 0.0) + float(straggling_s[own].sum())
    total_s = sum(seconds.values()) or 1.0
    found = [
        Waited(who, seconds[who] / total_s, steps[who] / len(rows), seconds[who]) for who in steps
    ]
    return sorted(found, key=lambda waited: -waited.waited_s)


def latest(anatomy: Anatomy, names: Mapping[tuple[int, int], str], rows: Array) -> Late:
    """Whom they wait for most."""
    waited = waited_for(anatomy, names, rows)
    return Late(waited[0].who, waited[0].share, waited[0].step_share) if waited else NOBODY


def finding(record: RunRecord, history: History) -> Finding | None:
    """None: no rank waits for another for long."""
    anatomy = history.anatomy
    rows = np.flatnonzero(anatomy.usual)
    if not len(rows):
        return None
    split = anatomy.mean(rows)
    share = shares_of(split).straggling
    waited = waited_for(anatomy, names_of_ranks(history.attempts), rows)
    is_one = bool(waited) and waited[0].share >= ALWAYS_THE_SAME
    if not share >= (WORTH_TELLING if is_one else WORTH_TELLING_OF_MANY):
        return None
    total_s = float(np.nansum(anatomy["straggling_s"][rows]))
    slow = [one for one in waited if one.share >= HAS_A_SHARE]
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=slow[0].who if is_one else "several in turn",
        confidence="high" if len(rows) >= FEW_STEPS else "low",
        sentence=_sentence(slow, is_one, share, split.straggling_s, split.late_data_s),
        evidence=[
            Figure("waiting for the slowest rank", split.straggling_s, "s", note="of a mean step"),
            Figure("share of the step", share, "share"),
            Figure("waited in the whole run", total_s, "s"),
            *(Figure(f"for {one.who}", one.share, "share", note=_often(one)) for one in slow),
        ],
        advice=(
            f"See what else runs on {slow[0].who}, whether it is throttled, or replace it."
            if is_one
            else "See what else runs on these hosts, and whether micro-batches differ much in size."
        ),
    )


def _sentence(
    slow: Sequence[Waited], is_one: bool, share: float, waited_s: float, late_data_s: float
) -> str:
    step = f"{seconds(waited_s)} of each step ({percent(share)})"
    why = ", because it waits for its data" if late_data_s > waited_s / 2 else ""
    if is_one:
        return f"The others wait {step} for {slow[0].who}{why}; it is {_often(slow[0])}."
    each = [f"{one.who} ({percent(one.share)} of the waiting)" for one in slow]
    return f"Ranks wait {step} for each other, in turn for {listed(each)}."


def _often(one: Waited) -> str:
    return f"the last in {percent(one.step_share)} of the steps"
