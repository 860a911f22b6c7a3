"""Who is late, from what each rank waited for the last one. Pure."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from dragoman.diagnosis.phrasing import listed
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.hosts import host_of
from dragoman.diagnosis.run.steps import StepParts
from dragoman.diagnosis.speed.bottleneck import ALWAYS_THE_SAME, NOBODY, Late
from dragoman.telemetry.read.tables import Array

WORTH_NAMING = 0.10
"""Of all waiting, to be named."""
CLEARLY_THE_SAME = 0.9
"""Of all waiting in a part of the run that is for one host: chance alone does not make so much of a
part that was looked for."""

RankNames: TypeAlias = Mapping[tuple[int, int], str]
"""Attempt and rank -> what to call it: its host, or itself where all are on one host."""


class AttemptWaits(NamedTuple):
    """Steps of one attempt."""

    names: Sequence[str]
    """Of the ranks, as in `RankNames`."""
    ranks: Sequence[int]
    waits_s: Array
    """Ranks x steps: what a rank waited for the last one. NaN: not recorded, or it took no part."""


class WaitedFor(NamedTuple):
    """What the others waited for one host, or for one rank."""

    who: str
    share: float
    """Of all waiting for others."""
    step_share: float
    """Of the steps: so often it came last."""
    waited_s: float
    """The longest waiting of each of these steps, in all of them together."""
    own_share: float
    """Its own waiting over the longest. Near zero: it is late whenever somebody is, whether or not
    another one is even later."""
    present_share: float
    """Of all waiting: so much fell into steps that it took part in."""

    @property
    def is_late(self) -> bool:
        return self.own_share <= 1 - ALWAYS_THE_SAME and self.present_share >= WORTH_NAMING


def rank_name(rank: int) -> str:
    return f"rank {rank}"


def names_of_ranks(attempts: Sequence[Attempt]) -> RankNames:
    has_hosts = any(len(attempt.host_names) > 1 for attempt in attempts)
    return {
        (attempt.number, rank): host_of(attempt, rank) if has_hosts else rank_name(rank)
        for attempt in attempts
        for rank in range(attempt.ranks)
    }


def waits_by_attempt(steps: StepParts, names: RankNames, rows: Array) -> list[AttemptWaits]:
    found = []
    ranks = list(steps.waits_s)
    for attempt in np.unique(steps.attempt[rows]).tolist():
        own = rows[steps.attempt[rows] == attempt]
        called = [names.get((attempt, rank), rank_name(rank)) for rank in ranks]
        waits_s = np.stack([waited_s[own] for waited_s in steps.waits_s.values()])
        found.append(AttemptWaits(called, ranks, waits_s))
    return found


def latest(steps: StepParts, names: RankNames, rows: Array) -> Late:
    """Returns whom the ranks wait for most in these steps."""
    return late_of(waits_by_attempt(steps, names, rows))


def culprits_of(steps: StepParts, names: RankNames, rows: Array) -> frozenset[str]:
    """Returns for whom nearly all waiting in these steps is; empty: for nobody in particular."""
    slow, _ = _slow_and_early(waited_for(waits_by_attempt(steps, names, rows)))
    is_clear = sum(one.share for one in slow) >= CLEARLY_THE_SAME
    return frozenset(one.who for one in slow) if is_clear else frozenset()


def waits_without(steps: StepParts, names: RankNames, rows: Array, who: Collection[str]) -> Array:
    """Returns by how much each of these steps would be shorter if those named, hosts or ranks, were
    no later than the last of the others."""
    waits_s = np.stack([waited_s[rows] for waited_s in steps.waits_s.values()])
    attempts, place = np.unique(steps.attempt[rows], return_inverse=True)
    is_named = np.array(
        [
            [_names_rank(who, attempt, rank, names) for attempt in attempts.tolist()]
            for rank in steps.waits_s
        ]
    )[:, place]
    of_others = np.where(is_named | np.isnan(waits_s), np.inf, waits_s).min(axis=0)
    return np.asarray(np.where(np.isfinite(of_others), of_others, 0.0))


def _names_rank(who: Collection[str], attempt: int, rank: int, names: RankNames) -> bool:
    name = names.get((attempt, rank), rank_name(rank))
    return name in who or f"{rank_name(rank)} on {name}" in who


def waited_for(attempts: Sequence[AttemptWaits]) -> list[WaitedFor]:
    """Returns all names, those that the others waited for most first; none where nobody waited."""
    last_steps, waited_s, own_s, present_s = (defaultdict[str, float](float) for _ in range(4))
    for names, _, waits_s in attempts:
        straggling_s = np.nan_to_num(np.fmax.reduce(waits_s))
        last = np.where(np.isnan(waits_s), np.inf, waits_s).argmin(axis=0)
        called = list(dict.fromkeys(names))
        of_rank = np.array([called.index(name) for name in names])
        order = np.argsort(of_rank, kind="stable")
        begins = np.searchsorted(of_rank[order], np.arange(len(called)))
        # A host is as late as the latest of its ranks.
        own_waits_s = np.fmin.reduceat(waits_s[order], begins, axis=0)
        of_last = of_rank[last]
        sums = (
            (last_steps, np.bincount(of_last, straggling_s > 0, len(called))),
            (waited_s, np.bincount(of_last, straggling_s, len(called))),
            (own_s, np.nansum(own_waits_s, axis=1)),
            (present_s, (~np.isnan(own_waits_s)) @ straggling_s),
        )
        for totals, values in sums:
            for who, value in zip(called, values.tolist(), strict=True):
                totals[who] += value
    total_s = sum(waited_s.values())
    steps = sum(attempt.waits_s.shape[1] for attempt in attempts)
    found = [
        WaitedFor(
            who,
            share=waited_s[who] / total_s,
            step_share=last_steps[who] / steps,
            waited_s=waited_s[who],
            own_share=own_s[who] / present_s[who],
            present_share=present_s[who] / total_s,
        )
        for who in present_s
        if present_s[who]
    ]
    return sorted(found, key=lambda one: -one.waited_s)


def late_of(attempts: Sequence[AttemptWaits]) -> Late:
    """Returns those who are late whenever somebody is; else the one whom the others wait for most.

    They are slower than most: where more than half are late, rather some of the others are early.
    """
    slow, early = _slow_and_early(waited_for(attempts))
    if not slow:
        return NOBODY
    names = [name for one in slow for name in _late_ranks(attempts, one.who) or [one.who]]
    return Late(
        listed(sorted(names)),
        share=sum(one.share for one in slow),
        step_share=sum(one.step_share for one in slow),
        are_several=len(names) > 1,
        are_ranks=any(name.startswith("rank ") for name in names),  # no host has a blank
        early=listed(sorted(one.who for one in early)),
    )


def _slow_and_early(waited: Sequence[WaitedFor]) -> tuple[Sequence[WaitedFor], list[WaitedFor]]:
    """Returns whom the others wait for, and who waits where most are late together."""
    late = [one for one in waited if one.is_late]
    are_most = 2 * len(late) > len(waited)
    slow = late if late and not are_most else waited[:1]
    return slow, [one for one in waited if are_most and one not in late]


def _late_ranks(attempts: Sequence[AttemptWaits], host: str) -> list[str]:
    """Returns those of a host's ranks that are late when it is; none where all are, now one and now
    another, or where it has but one."""
    suffix = f" on {host}"
    by_rank = [
        attempt._replace(
            names=[
                rank_name(rank) + suffix if name == host else name
                for name, rank in zip(attempt.names, attempt.ranks, strict=True)
            ]
        )
        for attempt in attempts
    ]
    own = [one for one in waited_for(by_rank) if one.who.endswith(suffix)]
    late = [one.who for one in own if one.is_late]
    return late if len(late) < len(own) else []


def whose_waiting(late: Late) -> str:
    return f"Most are equally fast, and the waiting is that of {late.early} alone"


def because_of_data(late: Late) -> str:
    they_wait = "they wait for their" if late.are_several else "it waits for its"
    return f", because {they_wait} data"
