"""Who is late, from what each rank waited for the last one. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.phrasing import listed
from dragoman.diagnosis.speed.bottleneck import ALWAYS_THE_SAME, NOBODY, Late
from dragoman.telemetry.read.tables import Array

HAS_A_SHARE = 0.10
"""Of all waiting, to be named."""


class Piece(NamedTuple):
    """Steps of one attempt."""

    called: Sequence[str]
    """What to call each rank: its host, or itself where all are on one host."""
    numbers: Sequence[int]
    """Of the ranks."""
    waits_s: Array
    """Ranks x steps: what a rank waited for the last one. NaN: not recorded, or it took no part."""


class Waited(NamedTuple):
    """For one host, or one rank."""

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
    there_share: float
    """Of all waiting: so much fell into steps that it took part in."""

    @property
    def is_late(self) -> bool:
        is_late_when_there = self.own_share <= 1 - ALWAYS_THE_SAME
        return is_late_when_there and self.there_share >= HAS_A_SHARE


def rank_name(number: int) -> str:
    return f"rank {number}"


def _is_rank(name: str) -> bool:
    return name.startswith("rank ")  # no host has a blank in its name


def waited_for(pieces: Sequence[Piece]) -> list[Waited]:
    """All of them, those whom the others waited for most first; none where nobody waited."""
    last_steps, waited_s, own_s, there_s = (defaultdict[str, float](float) for _ in range(4))
    for called, _, waits_s in pieces:
        straggling_s = np.nan_to_num(np.fmax.reduce(waits_s))
        last = np.where(np.isnan(waits_s), np.inf, waits_s).argmin(axis=0)
        for who in dict.fromkeys(called):
            places = [place for place, name in enumerate(called) if name == who]
            # A host is as late as the latest of its ranks.
            own_waits_s = np.fmin.reduce(waits_s[places])
            is_last = np.isin(last, places) & (straggling_s > 0)
            last_steps[who] += float(is_last.sum())
            waited_s[who] += float(straggling_s[is_last].sum())
            own_s[who] += float(np.nansum(own_waits_s))
            there_s[who] += float(straggling_s[~np.isnan(own_waits_s)].sum())
    total_s = sum(waited_s.values())
    steps = sum(piece.waits_s.shape[1] for piece in pieces)
    found = [
        Waited(
            who,
            share=waited_s[who] / total_s,
            step_share=last_steps[who] / steps,
            waited_s=waited_s[who],
            own_share=own_s[who] / there_s[who],
            there_share=there_s[who] / total_s,
        )
        for who in there_s
        if there_s[who]
    ]
    return sorted(found, key=lambda waited: -waited.waited_s)


def late_of(pieces: Sequence[Piece]) -> Late:
    """Those who are late whenever somebody is; else the one whom the others wait for most.

    They are slower than most: where more than half are late, rather some of the others are early.
    """
    waited = waited_for(pieces)
    if not waited:
        return NOBODY
    late = [one for one in waited if one.is_late]
    are_most = 2 * len(late) > len(waited)
    slow = late if late and not are_most else waited[:1]
    names = [name for one in slow for name in _late_ranks(pieces, one.who) or [one.who]]
    early = [one.who for one in waited if are_most and one not in late]
    return Late(
        listed(sorted(names)),
        share=sum(one.share for one in slow),
        step_share=sum(one.step_share for one in slow),
        are_several=len(names) > 1,
        are_ranks=any(map(_is_rank, names)),
        early=listed(sorted(early)),
    )


def _late_ranks(pieces: Sequence[Piece], host: str) -> list[str]:
    """Those of a host's ranks that are late when it is; none: all are, now one and now another, or
    it has but one."""
    on_host = [
        Piece([_named(piece, place, host) for place in range(len(piece.called))], *piece[1:])
        for piece in pieces
    ]
    own = [one for one in waited_for(on_host) if one.who.endswith(f" on {host}")]
    late = [one.who for one in own if one.is_late]
    return late if len(late) < len(own) else []


def _named(piece: Piece, place: int, host: str) -> str:
    name = piece.called[place]
    return f"{rank_name(piece.numbers[place])} on {host}" if name == host else name
