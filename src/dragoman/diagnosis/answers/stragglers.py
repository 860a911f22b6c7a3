"""Which host, or which rank, the others wait for, and for how long."""

from collections.abc import Mapping, Sequence

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import listed, percent, seconds
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import host_of
from dragoman.diagnosis.run.steps import StepParts, StepSplit
from dragoman.diagnosis.speed.bottleneck import ALWAYS_THE_SAME, Late, shares_of
from dragoman.diagnosis.speed.lateness import (
    HAS_A_SHARE,
    Piece,
    Waited,
    late_of,
    rank_name,
    waited_for,
)
from dragoman.telemetry.read.columns import Array

KEY = "stragglers"
QUESTION = "Do ranks wait for a slow one?"

WORTH_TELLING = 0.05
"""Of the step, for one that is always the last."""
WORTH_TELLING_OF_MANY = 0.10
"""Chance alone makes some rank the last of each step."""
FEW_STEPS = 20

SEE_TO_THE_DATA = (
    "See what the processes that read the data{} wait for: the disk, the network that the files "
    "come over, or a processor that others use too."
)
"""Of all ranks, or for some of them."""


def names_of_ranks(attempts: Sequence[Attempt]) -> dict[tuple[int, int], str]:
    """Attempt and rank -> what to call it: its host, or itself where all are on one host."""
    has_hosts = any(len(attempt.host_names) > 1 for attempt in attempts)
    return {
        (attempt.number, rank): host_of(attempt, rank) if has_hosts else rank_name(rank)
        for attempt in attempts
        for rank in range(attempt.ranks)
    }


def pieces_of(anatomy: StepParts, names: Mapping[tuple[int, int], str], rows: Array) -> list[Piece]:
    found = []
    ranks = list(anatomy.waits_s)
    for attempt in np.unique(anatomy.attempt[rows]).tolist():
        own = rows[anatomy.attempt[rows] == attempt]
        called = [names.get((attempt, rank), rank_name(rank)) for rank in ranks]
        waits_s = np.stack([waited_s[own] for waited_s in anatomy.waits_s.values()])
        found.append(Piece(called, ranks, waits_s))
    return found


def latest(anatomy: StepParts, names: Mapping[tuple[int, int], str], rows: Array) -> Late:
    """Whom they wait for most."""
    return late_of(pieces_of(anatomy, names, rows))


def finding(run: RunFacts) -> Finding | None:
    """None: no rank waits for another for long."""
    anatomy = run.step_parts
    rows = np.flatnonzero(anatomy.usual)
    if not len(rows):
        return None
    split = anatomy.mean(rows)
    share = shares_of(split).straggling
    pieces = pieces_of(anatomy, names_of_ranks(run.attempts), rows)
    waited, late = waited_for(pieces), late_of(pieces)
    is_same = late.share >= ALWAYS_THE_SAME
    if not share >= (WORTH_TELLING if is_same else WORTH_TELLING_OF_MANY):
        return None
    total_s = float(np.nansum(anatomy["straggling_s"][rows]))
    named = [one for one in waited if one.share >= HAS_A_SHARE]
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=_verdict(late),
        confidence="high" if len(rows) >= FEW_STEPS else "low",
        sentence=_sentence(late, named, share, split),
        evidence=[
            Figure("waiting for the slowest rank", split.straggling_s, "s", note="of a mean step"),
            Figure("share of the step", share, "share"),
            Figure("waited in the whole run", total_s, "s"),
            *(Figure(f"for {one.who}", one.share, "share", note=_often(one)) for one in named),
        ],
        advice=advice_on(late, split),
    )


def _verdict(late: Late) -> str:
    if late.share >= ALWAYS_THE_SAME:
        return late.who
    return f"all but {late.early}" if late.early else "several in turn"


def _sentence(late: Late, named: Sequence[Waited], share: float, split: StepSplit) -> str:
    waited = f"{seconds(split.straggling_s)} ({percent(share)})"
    if late.share >= ALWAYS_THE_SAME:
        how = f"it is {_often(late)}"
        if late.are_several:
            how = "they are late whenever somebody is"
        why = because_of_data(late) if is_because_of_data(split) else ""
        return f"In the mean step the others wait {waited} for {late.who}{why}; {how}."
    if late.early:
        return f"{whose_waiting(late)}: {waited} of the mean step."
    each = [f"{one.who} ({percent(one.share)} of the waiting)" for one in named]
    why = ", mostly because data comes late" if is_because_of_data(split) else ""
    return f"In the mean step ranks wait {waited} for each other, in turn for {listed(each)}{why}."


def whose_waiting(late: Late) -> str:
    return f"Most are equally fast, and the waiting is that of {late.early} alone"


def is_because_of_data(split: StepSplit) -> bool:
    return split.late_data_s > split.straggling_s / 2


def because_of_data(late: Late) -> str:
    they_wait = "they wait for their" if late.are_several else "it waits for its"
    return f", because {they_wait} data"


def advice_on(late: Late, split: StepSplit) -> str:
    is_same = late.share >= ALWAYS_THE_SAME
    if is_because_of_data(split):
        return SEE_TO_THE_DATA.format(f" for {late.who}" if is_same else "")
    if is_same:
        where = f"uses the device of {late.who}" if late.are_ranks else f"runs on {late.who}"
        if late.are_several:
            return f"See what else {where}, whether they are throttled, or replace them."
        return f"See what else {where}, whether it is throttled, or replace it."
    if late.early:
        return "Hosts of equal speed would not wait for each other; nothing else is wrong."
    return (
        "See what else runs on the hosts; micro-batches that differ much in size also make ranks "
        "wait for each other."
    )


def _often(one: Waited | Late) -> str:
    return f"the last in {percent(one.step_share)} of the steps"
