"""What lies behind the bottleneck of a run: a capped port, waiting that comes and goes, programs of
others, work that does not divide evenly. Facts of a run come in, its causes go out. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.speed.bottleneck import Verdict
from dragoman.diagnosis.speed.cap_turns import CapTurn, cap_and_turns
from dragoman.diagnosis.speed.capped import Cap
from dragoman.diagnosis.speed.foreign_load import MUCH_TAKEN, ProcessorLoad, loads_of
from dragoman.diagnosis.speed.intermittent import Intermittent, intermittent
from dragoman.diagnosis.speed.link_use import passes_elsewhere
from dragoman.diagnosis.speed.overview import SpeedFacts
from dragoman.diagnosis.speed.phases import RunBottleneck, evidence_of
from dragoman.diagnosis.speed.what_if import ProjectedSteps, projected_steps
from dragoman.diagnosis.speed.work_shares import work_shares
from dragoman.telemetry.read.tables import Array, known

WAITED_FOR: Mapping[Verdict, str] = {
    "network-bound": "the network",
    "straggler": "the slowest rank",
    "input-bound": "data",
}


class Causes(NamedTuple):
    found: RunBottleneck
    speed: SpeedFacts
    bad: Intermittent | None
    """Steps in which they wait much more than in others."""
    bad_for: str
    """What they wait for then, one of `WAITED_FOR`."""
    cap: Cap | None
    """Where it has moved, of the last turn."""
    cap_turns: Sequence[CapTurn]
    """What held the ring back one after another, where that has changed a few times."""
    held_rows: Array
    """The steps in which what is advised would have helped: those of the last turn, or all for
    which the verdict holds."""
    at_most: float
    """Bytes a second that passed while all waited for the network. NaN: not known."""
    crowded: Mapping[str, ProcessorLoad]
    """Hosts on which programs of others slow the run, the worst first."""
    is_shared_unevenly: bool
    """Ranks wait because micro-batches do not divide evenly among them."""
    projected: ProjectedSteps
    missing_ranks: int

    @property
    def is_slow_network(self) -> bool:
        """Whether the rate of the network holds the run back, always or now and then."""
        return not math.isnan(self.at_most)


def causes_of(run: RunFacts, speed: SpeedFacts, found: RunBottleneck) -> Causes:
    held = _held_rows(run, speed.rows, found)
    bad, bad_for = _intermittent(run, held, found.verdict)
    waited_s, slow = found.split.network_s, held
    is_network = found.verdict == "network-bound"
    if bad is not None and bad_for == WAITED_FOR["network-bound"]:
        waited_s, slow = bad.bad_s, held[bad.is_bad]
        is_network = found.verdict != "latency-bound"
    is_network = is_network and not passes_elsewhere(speed.hosts)
    cap, turns = cap_and_turns(run, _of_verdict(slow, found), found) if is_network else (None, [])
    return Causes(
        found=found,
        speed=speed,
        bad=bad,
        bad_for=bad_for,
        cap=cap,
        cap_turns=turns,
        held_rows=turns[-1].rows if turns else held,
        at_most=_rate_at_limit(cap, speed.hosts, waited_s) if is_network else math.nan,
        crowded=slowed_hosts(run),
        is_shared_unevenly=work_shares(run).explain(found.split),
        projected=projected_steps(found.split, speed.link),
        missing_ranks=max(run.step_parts.missing_ranks.values(), default=0),
    )


def _of_verdict(rows: Array, found: RunBottleneck) -> Array:
    """Returns those rows that belong to phases of the verdict, without what lies in between; all
    of them where the network is slow in other phases."""
    own = np.intersect1d(rows, found.rows)
    return own if len(own) else rows


def slowed_hosts(run: RunFacts) -> dict[str, ProcessorLoad]:
    """Returns the hosts on which programs of others slow the run, and those whose hardware gives
    much of its time to other machines, the worst first."""
    loads = [
        load for load in loads_of(run).values() if load.is_crowded or load.stolen >= MUCH_TAKEN
    ]
    return {load.host: load for load in sorted(loads, key=lambda load: -others_take(load))}


def others_take(load: ProcessorLoad) -> float:
    """Returns the share of a host's processors that others take from the run, 0 to 1."""
    return max(known([load.taken, load.stolen]), default=0.0)


def _held_rows(run: RunFacts, rows: Array, found: RunBottleneck) -> Array:
    """Returns the rows between the first and the last step for which the verdict holds."""
    step = run.step_parts.step[rows]
    first = found.since_step if found.since_step is not None else -1
    last = found.until_step if found.until_step is not None else np.inf
    return np.asarray(rows[(step >= first) & (step <= last)])


def _intermittent(run: RunFacts, rows: Array, verdict: Verdict) -> tuple[Intermittent | None, str]:
    """Returns the steps in which ranks wait much more than in others, and what for; where nothing
    holds the run back in the mean, something may still do so now and then."""
    asked: Sequence[Verdict] = (verdict,)
    if verdict == "latency-bound":
        asked = ("network-bound",)
    elif verdict == "compute-bound":
        asked = ("network-bound", "straggler", "input-bound")
    step_s = run.step_parts["step_s"][rows]
    found = [
        (bad, WAITED_FOR[each])
        for each in asked
        if (bad := intermittent(evidence_of(each, run.step_parts)[rows], step_s)) is not None
    ]
    return max(found, key=lambda one: one[0].step_share * one[0].bad_s, default=(None, ""))


def _rate_at_limit(cap: Cap | None, hosts: Sequence[HostTraffic], waited_s: float) -> float:
    """Returns what passed at most, in bytes a second, while all waited; NaN: not known.

    That is the rate of the slowest port in its fastest moments. Where these were not noted, it is a
    bound: all bytes of a step within the waiting alone, though some passed before.
    """
    if cap is not None and cap.is_measured:
        return cap.rate
    sent = max(known(host.bytes_per_step["sent"] for host in hosts), default=math.nan)
    return sent / waited_s if waited_s > 0 else math.nan
