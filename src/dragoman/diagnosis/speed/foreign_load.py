"""What other programs, and other machines on the same hardware, take of each host's processors.

A host knows how busy its processors are and what each of its own ranks uses: the rest belongs to
programs that are not of this run. The ranks of other hosts are not among its values. Hosts may be
one machine in truth, as in a lab; then the ranks of all of them are the run's own.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.phrasing import listed, percent
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors, host_of
from dragoman.telemetry.read.tables import Array, Table, group_column, known_mean

FULL = 0.9
"""Of all cores: where fewer are busy, nobody takes anything from anybody."""
MUCH_TAKEN = 0.15
"""Of all cores: the run is slower for it."""
SAME_LOAD = 0.8
"""Of all changes: two hosts whose load averages agree to the digit so often are one machine."""
FEWEST_CHANGES = 3
OFTEN = 0.8
"""Of the readings: what is so more seldom is not called permanent."""
MOST_NAMED = 3


class ProcessorLoad(NamedTuple):
    """Of one host, in the mean over what was read during steps; shares of all its cores, 0 to 1.
    NaN: not recorded."""

    host: str
    cores: float
    busy: float
    own: float
    """Taken by ranks of this run."""
    foreign: float
    """Taken by other programs."""
    stolen: float
    """Taken by other machines on the same hardware, of those that share it."""
    taken: float
    """By both of these while the processors were full, so that the run had to do without."""
    full_share: float
    """Of the readings: the processors were full, and both together took much of them."""

    @property
    def is_crowded(self) -> bool:
        """Whether the run is slower because of others."""
        return self.taken >= MUCH_TAKEN

    @property
    def taken_then(self) -> float:
        """By others, while they take much of it; where that is not known, what the hardware gives
        to other machines."""
        return self.taken / self.full_share if self.is_crowded else self.stolen


def crowded_hosts(run: RunFacts) -> dict[str, ProcessorLoad]:
    """Returns the hosts on which others slow the run, the worst first."""
    crowded = [load for load in loads_of(run).values() if load.is_crowded]
    return {load.host: load for load in sorted(crowded, key=lambda load: -load.taken)}


def crowd_in_words(crowded: Mapping[str, ProcessorLoad]) -> str:
    """Returns who takes how much of which hosts' processors, without a period at the end."""
    by_whom: dict[tuple[str, bool], list[ProcessorLoad]] = defaultdict(list)
    for load in crowded.values():
        who = "other programs"
        if load.stolen > load.foreign:
            who = "other machines on the same hardware"
        by_whom[who, load.full_share >= OFTEN].append(load)
    return listed([_taken_in_words(who, often, loads) for (who, often), loads in by_whom.items()])


def _taken_in_words(who: str, often: bool, loads: Sequence[ProcessorLoad]) -> str:
    return f"{who} take {share_in_words(loads, often)}"


def share_in_words(loads: Sequence[ProcessorLoad], often: bool | None = None) -> str:
    """Returns how much others take of which hosts' processors, and how often: the same words in all
    answers. `often`: of all of them, or of none."""
    hosts = [load.host for load in loads]
    where = listed(hosts) if len(hosts) <= MOST_NAMED else f"{len(hosts)} hosts"
    if often is None:
        often = all(not load.is_crowded or load.full_share >= OFTEN for load in loads)
    taken = _range([load.taken_then for load in loads])
    when = "" if often else f" during {_range([load.full_share for load in loads])} of the time"
    return f"{taken} of the processors of {where}{when}"


def _range(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def loads_of(run: RunFacts) -> dict[str, ProcessorLoad]:
    """Returns the load of each host whose sensors have read it, in the order of the ranks."""
    attempts = {attempt.number: attempt for attempt in run.attempts}
    neighbors = _on_one_machine(list(run.hosts.values()))
    return {
        host: _load_of(sensors, [run.hosts[name] for name in neighbors[host]], attempts)
        for host, sensors in run.hosts.items()
        if len(sensors.levels("cpu/percent"))
    }


def _load_of(
    sensors: HostSensors, neighbors: Sequence[HostSensors], attempts: Mapping[int, Attempt]
) -> ProcessorLoad:
    """`neighbors`: other hosts that are the same machine."""
    cores = sensors.cores or math.nan
    pieces = []
    for number, table in _by_attempt(sensors):
        own = _own_percent(table, sensors.host, attempts[number])
        beside = np.zeros(len(table))
        for neighbor in neighbors:
            for theirs in (theirs for n, theirs in _by_attempt(neighbor) if n == number):
                used = _own_percent(theirs, neighbor.host, attempts[number])
                beside = beside + _at_times(table["at"], theirs["at"], used)
        busy = group_column(table, "values", "cpu/percent")
        stolen = np.nan_to_num(group_column(table, "values", "cpu/steal_percent"))
        pieces.append(np.stack([busy, own, beside, stolen]))
    busy, own, beside, stolen = np.concatenate(pieces, axis=1) / 100
    own, beside = own / cores, beside / cores
    # The first reading of a process counts since it began, and may exceed what there is.
    own = np.where(own > 1.0, np.nan, own)
    foreign = busy - own - beside - stolen
    others = np.maximum(0.0, foreign) + stolen
    is_taken = (busy >= FULL) & (others >= MUCH_TAKEN)
    is_known = ~np.isnan(others)
    return ProcessorLoad(
        host=sensors.host,
        cores=cores,
        busy=known_mean(busy),
        own=known_mean(own),
        # Of single readings noise goes both ways, so the mean is bounded and not each of them.
        foreign=np.maximum(0.0, known_mean(foreign)).item(),
        stolen=known_mean(stolen),
        taken=known_mean(np.where(is_taken, others, 0.0)[is_known]),
        full_share=known_mean(is_taken[is_known].astype(float)),
    )


def _by_attempt(sensors: HostSensors) -> Iterator[tuple[int, Table]]:
    for table in sensors.readings:
        if len(table):
            yield int(table["attempt"][0]), table


def _own_percent(table: Table, host: str, attempt: Attempt) -> Array:
    """Returns what the ranks of a host use at each reading, 100 for a core; NaN where one of them
    was not read."""
    ranks = [rank for rank in range(attempt.ranks) if host_of(attempt, rank) == host]
    used = [group_column(table, "values", f"rank/{rank}/cpu_percent") for rank in ranks]
    return np.sum(used, axis=0) if used else np.full(len(table), np.nan)


def _at_times(wanted: Array, times: Array, values: Array) -> Array:
    is_known = ~np.isnan(values)
    if not is_known.any():
        return np.full(len(wanted), np.nan)
    return np.interp(wanted, times[is_known], values[is_known])


def _on_one_machine(hosts: Sequence[HostSensors]) -> dict[str, list[str]]:
    """Returns for each host the names of all others that are the same machine."""
    return {
        host.host: [
            other.host for other in hosts if other is not host and _have_same_load(host, other)
        ]
        for host in hosts
    }


def _have_same_load(first: HostSensors, second: HostSensors) -> bool:
    """Returns whether both read the same load averages at about the same moments: those are kept by
    the kernel to the hundredth, and no two kernels go through the same values."""
    others = dict(_by_attempt(second))
    equal = [np.empty(0, dtype=bool)]
    for number, table in _by_attempt(first):
        theirs = others.get(number)
        if theirs is None:
            continue
        own, their_load = (group_column(each, "values", "cpu/load") for each in (table, theirs))
        is_new = np.append(True, np.diff(own) != 0)
        place = np.searchsorted(theirs["at"], table["at"][is_new])
        # One of the two may have been read just before the kernel counted anew.
        near = np.clip(place + np.array([[-2], [-1], [0], [1]]), 0, len(theirs) - 1)
        equal.append((their_load[near] == own[is_new]).any(axis=0))
    found = np.concatenate(equal)
    return len(found) >= FEWEST_CHANGES and float(found.mean()) >= SAME_LOAD
