"""How fast a run was and what held it back: figures that several answers give, derived once.

Every answer takes them from here, so that none contradicts another.
"""

import weakref
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Link, Shares, shares_of
from dragoman.diagnosis.speed.lateness import RankNames, names_of_ranks
from dragoman.diagnosis.speed.link_use import link_between
from dragoman.diagnosis.speed.phases import RunBottleneck, bottleneck_of
from dragoman.telemetry.read.tables import Array


class SpeedFacts(NamedTuple):
    rows: Array
    """Of `run.step_parts`: the usual steps, over which all means are taken."""
    split: StepSplit
    """Of the mean step."""
    shares: Shares
    ranks: int
    """The most of any attempt."""
    names: RankNames
    hosts: list[HostTraffic]
    link: Link
    bottleneck: RunBottleneck | None
    """None: it is not known, because what ranks waited for each other was not recorded."""


_KNOWN: weakref.WeakKeyDictionary[RunFacts, SpeedFacts | None] = weakref.WeakKeyDictionary()


def speed_of(run: RunFacts) -> SpeedFacts | None:
    """Returns None where all ranks together have recorded no step."""
    if run not in _KNOWN:
        _KNOWN[run] = _speed_of(run)
    return _KNOWN[run]


def _speed_of(run: RunFacts) -> SpeedFacts | None:
    steps, hosts = run.step_parts, run.host_traffic
    if not len(steps):
        return None
    rows = np.flatnonzero(steps.usual)
    split = steps.mean(rows)
    ranks = max(attempt.ranks for attempt in run.attempts)
    names = names_of_ranks(run.attempts)
    link = link_between(hosts, run.record.model_size.gradient_bytes)
    is_known = ranks == 1 or not np.isnan(split.network_s)
    return SpeedFacts(
        rows=rows,
        split=split,
        shares=shares_of(split),
        ranks=ranks,
        names=names,
        hosts=hosts,
        link=link,
        bottleneck=bottleneck_of(steps, rows, link, names) if is_known else None,
    )
