"""Which host's port holds back a ring: what passed each port goes in, a host or a hop comes out.

A ring all-reduce sends the same bytes over every hop, so in the mean all ports look alike. They
differ in how the bytes pass. A port at its limit passes them evenly. A port that is faster than
that passes each piece in a burst and then waits for the next one. So behind a capped port the
highest rates are level, and those of all other hops lie far above.

The host that sends to a capped one fills the queue in front of it, so it sends in small bursts,
too; a host that is held back by its own port does not. Measured with gloo in a lab, with one port
of 40 Mbit/s: evenly paced ports stay within 2 % of it, a sender into the queue of another one
reaches 1.2 to 1.4 times as much, and hops without a limit reach 2.7 times as much and more.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from dragoman.diagnosis.run.hosts import HostSensors
from dragoman.diagnosis.speed.phases import change_point
from dragoman.telemetry.read.tables import Array, group_column

Way = Literal["sent", "received"]
WAYS: Sequence[Way] = ("sent", "received")

BURST_S = 0.1
"""Over which the sensors measure a burst."""
FEWEST_READINGS = 5
"""Of each port, while it was busy."""
BUSY_SHARE = 0.25
"""Of a port's usual highest rate: readings below fell between two all-reduces."""
HIGH_PERCENTILE = {"bursts": 50, "rates": 95}
"""What a port usually reaches. Of whole readings only the highest show a difference, and one of
them may be an outlier."""
HIGHEST_PERCENTILE = 90
"""What it reaches now and then: shows whether its sending is even."""


class Margins(NamedTuple):
    """Of the lowest rate of any port."""

    at_cap: float
    """A port that reaches no more is at the limit."""
    above: float
    """One that reaches so much is not."""
    even: float
    """A sender that never reaches more is paced by its own port."""
    uneven: float
    """One that reaches so much is not."""


OF_BURSTS = Margins(at_cap=1.08, above=1.2, even=1.08, uneven=1.18)
"""Of the fastest tenth of a second: TCP and the queues of the way blur it by up to a fifth."""
OF_READINGS = Margins(at_cap=1.05, above=1.10, even=0.0, uneven=math.inf)
"""Of whole readings, in records without bursts. A second blurs nearly all; nothing can be said of
how even it was."""


class PortRates(NamedTuple):
    """What passed a host's port while the ring was busy, in bytes a second: each busy reading of
    the sensors has one value for each way."""

    host: str
    rates: Mapping[Way, Array]
    """Means between two readings."""
    bursts: Mapping[Way, Array]
    """The fastest tenth of a second between two readings; empty in older records."""


class Cap(NamedTuple):
    """What holds the ring back, as far as it can be told."""

    rate: float
    """In bytes a second."""
    hosts: Sequence[str] = ()
    """Whose ports are capped; empty: not known."""
    hop: tuple[str, str] | None = None
    """From this host to that one: which of the two it is cannot be told."""
    has_even_sender: bool = False
    """Bytes leave the first host of the hop as evenly as from a port at its limit: it is the first
    to look at."""
    is_sure: bool = False
    """Known from bursts that are far above; else the evidence is a small difference."""
    is_measured: bool = True
    """The rate is that of the fastest moments; else of whole readings, which may be too low."""
    reason: str = ""
    """Why no host is named."""

    @property
    def places(self) -> frozenset[str]:
        """The hosts at the slow place; empty: not known, or not surely."""
        return frozenset(self.hosts or self.hop or ()) if self.is_sure else frozenset()


def cap_of(ports: Sequence[PortRates]) -> Cap | None:
    """Returns what can be told of the slowest place of a ring; None: too little was recorded.

    It takes for granted that the ring waits for its network.
    """
    if len(ports) < 2:
        return None
    has_bursts = all(len(port.bursts[way]) >= FEWEST_READINGS for port in ports for way in WAYS)
    read = {port.host: port.bursts if has_bursts else port.rates for port in ports}
    if any(len(values) < FEWEST_READINGS for ways in read.values() for values in ways.values()):
        return None
    high = _percentiles(read, HIGH_PERCENTILE["bursts" if has_bursts else "rates"])
    lowest = min(rate for ways in high.values() for rate in ways.values())
    if not lowest > 0:
        return None
    margins = OF_BURSTS if has_bursts else OF_READINGS
    at_cap = _ways_of(high, lambda rate: rate <= margins.at_cap * lowest)
    above = _ways_of(high, lambda rate: rate >= margins.above * lowest)
    level = [host for host, ways in at_cap.items() if len(ways) == len(WAYS)]
    if level and len(level) < len(high) and all(above[h] for h in high if h not in level):
        found = Cap(lowest, level, is_sure=has_bursts)
    elif not level and has_bursts:
        found = _one_way(lowest, at_cap, above, read)
    else:
        found = _by_pace(lowest, read, margins)
    return found._replace(is_measured=has_bursts)


def _ways_of(
    rates: Mapping[str, Mapping[Way, float]], holds: Callable[[float], bool]
) -> dict[str, list[Way]]:
    return {host: [way for way in WAYS if holds(ways[way])] for host, ways in rates.items()}


def _one_way(
    lowest: float,
    at_cap: Mapping[str, Sequence[Way]],
    above: Mapping[str, Sequence[Way]],
    read: Mapping[str, Mapping[Way, Array]],
) -> Cap:
    """Returns the one hop at which bytes pass evenly while they come in bursts at all others."""
    senders = [host for host, ways in at_cap.items() if "sent" in ways]
    receivers = [host for host, ways in at_cap.items() if "received" in ways]
    faster = sum(len(ways) for ways in above.values())
    if len(senders) > 1 or len(receivers) != 1 or faster < 2 * len(at_cap) - 2:
        return Cap(lowest, reason="the rates of the ports differ too little")
    receiver = receivers[0]
    if not senders:  # a queue on the way to the receiver takes the bursts of whoever sends to it
        return Cap(lowest, hop=(_nearest_sender(receiver, read), receiver), is_sure=True)
    sender = senders[0]
    # No proof: bytes also leave a port evenly behind which little queues on a slow way.
    is_even = _is_even(read[sender], lowest, OF_BURSTS)
    return Cap(lowest, hop=(sender, receiver), has_even_sender=is_even, is_sure=True)


def _nearest_sender(receiver: str, read: Mapping[str, Mapping[Way, Array]]) -> str:
    """Returns who sends least beyond the cap, of all others: queues slow their sender, too."""
    others = [host for host in read if host != receiver]
    return min(others, key=lambda host: float(np.median(read[host]["sent"])))


def _by_pace(lowest: float, read: Mapping[str, Mapping[Way, Array]], margins: Margins) -> Cap:
    """Returns the hosts that send evenly, where others send in bursts into their queues."""
    even = [host for host, ways in read.items() if _is_even(ways, lowest, margins)]
    uneven = [host for host, ways in read.items() if _is_uneven(ways, lowest, margins)]
    if even and uneven and len(even) + len(uneven) == len(read):
        return Cap(lowest, even)
    if len(even) == len(read):
        return Cap(lowest, reason="all ports are held to the same rate")
    if len(read) == 2:
        return Cap(lowest, reason="what passes between two hosts looks the same from both ends")
    return Cap(lowest, reason="all ports pass the same, as on a way that they share")


def _is_even(ways: Mapping[Way, Array], lowest: float, margins: Margins) -> bool:
    return float(np.percentile(ways["sent"], HIGHEST_PERCENTILE)) <= margins.even * lowest


def _is_uneven(ways: Mapping[Way, Array], lowest: float, margins: Margins) -> bool:
    return float(np.percentile(ways["sent"], HIGHEST_PERCENTILE)) >= margins.uneven * lowest


def _percentiles(
    read: Mapping[str, Mapping[Way, Array]], percentile: float
) -> dict[str, dict[Way, float]]:
    return {
        host: {way: float(np.percentile(values, percentile)) for way, values in ways.items()}
        for host, ways in read.items()
    }


def port_rates(sensors: HostSensors, interface: str, spans: Array) -> PortRates:
    """Returns what passed a port in the busy readings that lie within spans of time: rows of begin
    and end, in order."""
    rates: dict[Way, list[Array]] = {way: [] for way in WAYS}
    bursts: dict[Way, list[Array]] = {way: [] for way in WAYS}
    for table in sensors.readings:
        if len(table) < 2:
            continue
        at, passed_s = table["at"], np.diff(table["monotonic_at"])
        place = np.searchsorted(spans[:, 0], at[:-1], side="right") - 1
        is_inside = (place >= 0) & (at[1:] <= spans[place, 1]) & (passed_s > 0)
        for way in WAYS:
            name = f"network/{interface}/{way}"
            gained = np.diff(group_column(table, "values", f"{name}_bytes_total"))[is_inside]
            rates[way].append(gained / passed_s[is_inside])
            peaks = group_column(table, "values", f"{name}_peak_bytes_per_s")
            bursts[way].append(peaks[1:][is_inside])
    return PortRates(
        sensors.host,
        {way: busy(np.concatenate([np.empty(0), *values])) for way, values in rates.items()},
        {way: busy(np.concatenate([np.empty(0), *values])) for way, values in bursts.items()},
    )


def even_since(before: HostSensors, after: HostSensors, interface: str, span: Array) -> float:
    """Returns when, within a span of time, the port of the second host has become the one at its
    limit, in place of that of the first. NaN: not known."""
    highest = [_highest(sensors, interface) for sensors in (before, after)]
    (at, first), (other_at, second) = highest
    if not len(at) or not len(other_at):
        return math.nan
    difference = first - np.interp(at, other_at, second)
    inside = (at >= span[0]) & (at <= span[1])
    place = change_point(difference[inside], 0, int(inside.sum()))
    return float(at[inside][place]) if 0 < place < inside.sum() else math.nan


def _highest(sensors: HostSensors, interface: str) -> tuple[Array, Array]:
    """Returns the moments at which bursts were read, and the higher one of both ways."""
    at, highest = [np.empty(0)], [np.empty(0)]
    for table in sensors.readings:
        peaks = [
            group_column(table, "values", f"network/{interface}/{way}_peak_bytes_per_s")
            for way in WAYS
        ]
        at.append(table["at"])
        highest.append(np.maximum(*peaks))
    moments, values = np.concatenate(at), np.concatenate(highest)
    return moments[np.isfinite(values)], values[np.isfinite(values)]


def busy(values: Array) -> Array:
    """Leaves out readings in which next to nothing passed."""
    values = values[np.isfinite(values)]
    if not len(values):
        return values
    return values[values >= BUSY_SHARE * float(np.percentile(values, HIGHEST_PERCENTILE))]
