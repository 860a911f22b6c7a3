"""Which port holds the ring of a run back, and since when: a limit may move from one to another.
Facts of a run and some of its steps come in, one cap or a few in turn go out. Pure."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import LOOPBACK
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS
from dragoman.diagnosis.speed.capped import (
    BURST_S,
    WAYS,
    Cap,
    PortRates,
    cap_of,
    even_since,
    port_rates,
)
from dragoman.diagnosis.speed.phases import (
    MOST_TURNS,
    Phase,
    RunBottleneck,
    bounds_of,
    phases_by,
    step_since,
)
from dragoman.telemetry.read.tables import Array, known_mean

MOST_WINDOWS = 30
"""In which the slow port is looked for, to see whether it has moved."""
SHOWS_BURSTS = 1.5
"""Times what a burst is measured over: in shorter waiting it holds computing as well, and its rate
is a mean and no limit."""
MOVES = "it is now one port and now another"


class CapTurn(NamedTuple):
    """A part of the run in which one place holds the ring back, where that has moved."""

    cap: Cap
    since_step: int | None
    until_step: int | None
    rows: Array


def cap_and_turns(
    run: RunFacts, rows: Array, found: RunBottleneck
) -> tuple[Cap | None, list[CapTurn]]:
    """Returns which port holds the ring back in these steps; where it has moved a few times, the
    last one, and all of them in turn. No host is named where it is now one and now another."""
    whole = _cap_over(run, rows)
    if whole is None:
        return None, []
    seen: list[frozenset[str]] = []

    def places(begin: int, end: int, until_now: frozenset[str]) -> frozenset[str]:
        cap = _cap_over(run, rows[begin:end])
        own = cap.places if cap else frozenset[str]()
        if own:
            seen.append(own)
        return until_now if own & until_now or not own else own

    fewest = max(FEW_STEPS, len(rows) // MOST_WINDOWS)
    phases = phases_by(len(rows), fewest, places, frozenset())
    if not phases[0].what and len(phases) > 1:  # nothing speaks against it
        phases = [phases[1]._replace(begin=0), *phases[2:]]
    nobody = whole._replace(hosts=(), hop=None, is_sure=False, reason=MOVES)
    if len({phase.what for phase in phases if phase.what}) < 2:
        elsewhere = [own for own in seen if not own & whole.places]
        return (nobody if whole.places and 2 * len(elsewhere) > len(seen) else whole), []
    if len(phases) > MOST_TURNS:
        return nobody, []
    bounds = bounds_of(phases, [_change(run, rows, fewest, *pair) for pair in pairwise(phases)])
    parts = [(begin, end) for begin, end in pairwise(bounds) if begin < end]
    turns = [_turn(run, rows, begin, end, found) for begin, end in parts]
    if not all(turn.cap.places for turn in turns):
        return nobody, []
    return turns[-1].cap, turns


def _turn(run: RunFacts, rows: Array, begin: int, end: int, found: RunBottleneck) -> CapTurn:
    return CapTurn(
        _cap_over(run, rows[begin:end]) or Cap(math.nan),
        step_since(run.step_parts, rows, begin) if begin else found.since_step,
        int(run.step_parts.step[rows[end - 1]]) if end < len(rows) else found.until_step,
        rows[begin:end],
    )


def _change(
    run: RunFacts,
    rows: Array,
    reach: int,
    before: Phase[frozenset[str]],
    after: Phase[frozenset[str]],
) -> int:
    """Returns the index, not farther than `reach` from where it shows, at which another port has
    become the slow one."""
    begin = max(before.begin, after.begin - reach)
    near = rows[begin : min(after.end, after.begin + reach)]
    pauses = np.flatnonzero(np.diff(near) > FEW_STEPS // 2)
    if len(pauses):  # nobody waited for the network in between
        return begin + 1 + int(pauses[0])
    at = run.step_parts.at
    first = min(before.what - after.what, default="")
    second = min(after.what - before.what, default="")
    if not first or not second:
        return after.begin
    interface = next((h.interface for h in run.host_traffic if h.host == first), "")
    span = np.array([at[near[0]], at[near[-1]]])
    moment = even_since(run.hosts[first], run.hosts[second], interface, span)
    return after.begin if math.isnan(moment) else int(np.searchsorted(at[rows], moment))


def _cap_over(run: RunFacts, rows: Array) -> Cap | None:
    """Returns which port holds the ring back in these steps, as far as it can be told."""
    hosts = run.host_traffic
    if not len(rows) or len(hosts) < 2 or any(host.interface == LOOPBACK for host in hosts):
        return None
    spans = _spans(run, rows)
    ports: list[PortRates] = []
    for host in hosts:
        sensors = run.hosts.get(host.host)
        if sensors is None:
            return None
        ports.append(port_rates(sensors, host.interface, spans))
    if known_mean(run.step_parts["network_s"][rows]) < SHOWS_BURSTS * BURST_S:
        ports = [port._replace(bursts={way: np.empty(0) for way in WAYS}) for port in ports]
    return cap_of(ports)


def _spans(run: RunFacts, rows: Array) -> Array:
    """Returns begin and end of each stretch of these steps without a gap, in order of time."""
    steps = run.step_parts
    end = steps.at[rows]
    begin = end - steps["step_s"][rows]
    is_new = np.append(True, np.diff(rows) != 1)
    ends = np.append(np.flatnonzero(is_new)[1:] - 1, len(rows) - 1)
    spans = np.stack([begin[is_new], end[ends]], axis=1)
    return np.asarray(spans[np.argsort(spans[:, 0])])
