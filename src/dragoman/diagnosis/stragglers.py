"""Which host, or which rank, the others wait for, and for how long."""

from collections import defaultdict
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
    own_share: float
    """Of what the first one waits: so much it waits itself. Near zero: it is late whenever somebody
    is, whether or not another one is even later."""


def names_of_ranks(attempts: Sequence[Attempt]) -> dict[tuple[int, int], str]:
    """Attempt and rank -> what to call it: its host, or itself where all are on one host."""
    has_hosts = any(len(attempt.host_names) > 1 for attempt in attempts)
    return {
        (attempt.number, rank): host_of(attempt, rank) if has_hosts else f"rank {rank}"
        for attempt in attempts
        for rank in range(attempt.ranks)
    }


def waited_for(anatomy: Anatomy, names: Mapping[tuple[int, int], str], rows: Array) -> list[Waited]:
    """All of them, those whom the others waited for most first; none where nobody waited."""
    last_steps, waited_s, own_s, there_s = (defaultdict[str, float](float) for _ in range(4))
    for attempt in np.unique(anatomy.attempt[rows]).tolist():
        own = rows[anatomy.attempt[rows] == attempt]
        straggling_s = np.nan_to_num(anatomy["straggling_s"][own])
        ranks_of: dict[str, list[int]] = defaultdict(list)
        for rank in anatomy.waits_s:
            ranks_of[names.get((attempt, rank), f"rank {rank}")].append(rank)
        for who, ranks in ranks_of.items():
            # A host is as late as the latest of its ranks.
            waits_s = np.fmin.reduce([anatomy.waits_s[rank][own] for rank in ranks])
            is_last = np.isin(anatomy.last_rank[own], ranks)
            last_steps[who] += float(is_last.sum())
            waited_s[who] += float(straggling_s[is_last].sum())
            own_s[who] += float(np.nansum(waits_s))
            there_s[who] += float(straggling_s[~np.isnan(waits_s)].sum())
    total_s = sum(waited_s.values())
    found = [
        Waited(
            who,
            share=waited_s[who] / total_s,
            step_share=last_steps[who] / len(rows),
            waited_s=waited_s[who],
            own_share=own_s[who] / there_s[who],
        )
        for who in there_s
        if there_s[who]
    ]
    return sorted(found, key=lambda waited: -waited.waited_s)


def slow_ones(waited: Sequence[Waited]) -> list[Waited]:
    """Those who are late whenever somebody is; else the one whom the others wait for most.

    They are slower than most: where more than half are late, rather some of the others are early.
    """
    late = [one for one in waited if one.own_share <= 1 - ALWAYS_THE_SAME]
    return late if late and 2 * len(late) <= len(waited) else list(waited[:1])


def latest(anatomy: Anatomy, names: Mapping[tuple[int, int], str], rows: Array) -> Late:
    """Whom they wait for most."""
    return _together(slow_ones(waited_for(anatomy, names, rows)))


def _together(slow: Sequence[Waited]) -> Late:
    if not slow:
        return NOBODY
    return Late(
        listed(sorted(one.who for one in slow)),
        share=sum(one.share for one in slow),
        step_share=sum(one.step_share for one in slow),
        are_several=len(slow) > 1,
    )


def finding(record: RunRecord, history: History) -> Finding | None:
    """None: no rank waits for another for long."""
    anatomy = history.anatomy
    rows = np.flatnonzero(anatomy.usual)
    if not len(rows):
        return None
    split = anatomy.mean(rows)
    share = shares_of(split).straggling
    waited = waited_for(anatomy, names_of_ranks(history.attempts), rows)
    late = _together(slow_ones(waited))
    is_same = late.share >= ALWAYS_THE_SAME
    if not share >= (WORTH_TELLING if is_same else WORTH_TELLING_OF_MANY):
        return None
    total_s = float(np.nansum(anatomy["straggling_s"][rows]))
    named = [one for one in waited if one.share >= HAS_A_SHARE]
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=late.who if is_same else "several in turn",
        confidence="high" if len(rows) >= FEW_STEPS else "low",
        sentence=_sentence(late, named, share, split.straggling_s, split.late_data_s),
        evidence=[
            Figure("waiting for the slowest rank", split.straggling_s, "s", note="of a mean step"),
            Figure("share of the step", share, "share"),
            Figure("waited in the whole run", total_s, "s"),
            *(Figure(f"for {one.who}", one.share, "share", note=_often(one)) for one in named),
        ],
        advice=(
            advice_on(late)
            if is_same
            else "See what else runs on these hosts, and whether micro-batches differ much in size."
        ),
    )


def _sentence(
    late: Late, named: Sequence[Waited], share: float, waited_s: float, late_data_s: float
) -> str:
    step = f"{seconds(waited_s)} of each step ({percent(share)})"
    if late.share < ALWAYS_THE_SAME:
        each = [f"{one.who} ({percent(one.share)} of the waiting)" for one in named]
        return f"Ranks wait {step} for each other, in turn for {listed(each)}."
    why = because_of_data(late) if late_data_s > waited_s / 2 else ""
    if late.are_several:
        return f"The others wait {step} for {late.who}{why}, which are late together."
    return f"The others wait {step} for {late.who}{why}; it is {_often(late)}."


def because_of_data(late: Late) -> str:
    return (
        ", because they wait for their data"
        if late.are_several
        else (", because it waits for its data")
    )


def advice_on(late: Late) -> str:
    if late.are_several:
        return f"See what else runs on {late.who}, whether they are throttled, or replace them."
    return f"See what else runs on {late.who}, whether it is throttled, or replace it."


def _often(one: Waited | Late) -> str:
    return f"the last in {percent(one.step_share)} of the steps"
