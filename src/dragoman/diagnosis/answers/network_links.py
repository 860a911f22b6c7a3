"""What passed over the links of a run, and which of them is slower than it should be, in words."""

import math
from collections.abc import Sequence

from dragoman.diagnosis.findings import Figure, recorded
from dragoman.diagnosis.phrasing import bit_rate, listed, percent, rate, seconds, size
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.run.hosts import LOOPBACK
from dragoman.diagnosis.speed.bottleneck import Verdict
from dragoman.diagnosis.speed.cap_turns import CapTurn
from dragoman.diagnosis.speed.capped import Cap
from dragoman.diagnosis.speed.intermittent import Intermittent
from dragoman.diagnosis.speed.link_use import (
    CAPPED_SHARE,
    MUCH_RETRANSMITTED,
    by_port,
    most_retransmitted,
    passes_elsewhere,
)
from dragoman.diagnosis.speed.phases import between_steps
from dragoman.telemetry.read.tables import known


def traffic_in_words(hosts: Sequence[HostTraffic]) -> str:
    if not hosts:
        return "How many bytes passed was not recorded."
    if passes_elsewhere(hosts):
        return (
            "The gradients pass where the kernel does not count bytes, as with InfiniBand, so the "
            "rate of the link is not known."
        )
    sent = [host.rates["sent"] for host in hosts]
    received = [host.rates["received"] for host in hosts]
    each = "Each host" if len(hosts) > 1 else hosts[0].host
    words = (
        f"{each} sent {_range(sent)} and received {_range(received)} on average, "
        f"{size(max(host.bytes_per_step['sent'] for host in hosts))} a step"
    )
    if hosts[0].interface == LOOPBACK:
        words += ", all of it within the host"
    if ports := by_port(hosts):
        most = max(ports, key=lambda host: max(host.rates.values()) / host.port_rate)
        use = percent(max(most.rates.values()) / most.port_rate)
        words += f", {use} of the {bit_rate(most.port_rate)} that the port announces"
    return words + "."


def _range(rates: Sequence[float]) -> str:
    low, high = min(rates), max(rates)
    return rate(high) if low > 0.95 * high else f"{rate(low)} to {rate(high)}"


def slow_link_in_words(
    cap: Cap | None,
    at_most: float,
    hosts: Sequence[HostTraffic],
    now_and_then: bool = False,
    turns: Sequence[CapTurn] = (),
) -> str:
    """Names the port that all wait for, as far as it can be told, and how much passes it."""
    if not hosts or math.isnan(at_most):
        return ""
    ports = by_port(hosts)
    if len(ports) > 1 and ports[0].port_rate <= CAPPED_SHARE * ports[1].port_rate:
        slowest, second = ports[:2]
        if not at_most < CAPPED_SHARE * slowest.port_rate:
            return (  # a ring is as fast as its slowest
                f"{slowest.interface} of {slowest.host} announces {bit_rate(slowest.port_rate)}, "
                f"the others {bit_rate(second.port_rate)} or more: all wait for it."
            )
    announced = min(known(host.port_rate for host in hosts), default=math.nan)
    promise = ""
    if at_most < CAPPED_SHARE * announced:
        promise = f", although the ports announce {bit_rate(announced)}"
    passed = f"{bit_rate(at_most)} at most" if now_and_then else f"no more than {bit_rate(at_most)}"
    when = "In these steps" if now_and_then else "While all waited,"
    if cap is None or not (cap.hosts or cap.hop):
        if not promise:
            return ""
        why = f" ({cap.reason})" if cap and cap.reason else ""
        return (
            f"{when} {passed} passed{promise}: something on the way is slower than the "
            f"ports, or one host's link is, and it cannot be told which{why}."
        )
    words = f"{_capped_place(cap)} {passed}{promise}{_how_it_is_known(cap)}."
    if not turns:
        return words
    earlier = listed([turn_in_words(turn) for turn in turns[:-1]])
    now = between_steps(turns[-1].since_step, turns[-1].until_step)
    return f"{words} That holds {now}; before, it was the link {earlier}."


def turn_in_words(turn: CapTurn) -> str:
    """of node1 until step 300."""
    return f"{place_of(turn.cap)} {between_steps(turn.since_step, turn.until_step)}"


def place_of(cap: Cap) -> str:
    """of node1, from node1 to node2: to follow "the connection"."""
    if cap.hop and not cap.hosts:
        return f"from {cap.hop[0]} to {cap.hop[1]}"
    return f"of {listed(list(cap.hosts))}"


def _capped_place(cap: Cap) -> str:
    if not cap.hosts:
        sender, receiver = cap.hop or ("", "")
        return (
            f"The way from {sender} to {receiver} holds all back, behind the port of {sender} or "
            f"where {receiver} receives: it passes"
        )
    words = f"link {place_of(cap)} holds all back: it passes"
    if len(cap.hosts) > 1:
        words = f"links {place_of(cap)} hold all back: they pass"
    return f"The {words}" if cap.is_sure else f"Most likely the {words}"


def _how_it_is_known(cap: Cap) -> str:
    if not cap.is_sure:
        return "; bytes leave it evenly, while others send in bursts"
    return "; there bytes pass evenly, while on the other links they come in faster bursts"


def retransmitted_in_words(hosts: Sequence[HostTraffic], verdict: Verdict) -> str:
    share = most_retransmitted(hosts)
    is_network = verdict in ("network-bound", "latency-bound")
    if not is_network or share <= MUCH_RETRANSMITTED:
        return ""
    return f"{percent(share)} of the packets were sent again: the way loses some."


def intermittent_in_words(bad: Intermittent, what: str) -> str:
    """`what`: the network, the slowest rank, data."""
    return (
        f"It comes and goes: in {percent(bad.step_share)} of the steps they wait "
        f"{seconds(bad.bad_s)} for {what} and a step takes {seconds(bad.bad_step_s)}; in the "
        f"others it is {seconds(bad.usual_s)} of {seconds(bad.usual_step_s)}."
    )


def intermittent_figures(bad: Intermittent | None, what: str) -> list[Figure]:
    if bad is None:
        return []
    return [
        Figure(f"steps with much waiting for {what}", bad.step_share, "share"),
        Figure(f"median step with much waiting for {what}", bad.bad_step_s, "s"),
        Figure(f"median step without much waiting for {what}", bad.usual_step_s, "s"),
    ]


def traffic_figures(hosts: Sequence[HostTraffic]) -> list[Figure]:
    found = []
    for host in hosts:
        read = f"95th percentile of the busy readings of {host.interface}"
        burst = "the fastest tenth of a second of a reading, median of the busy ones"
        port = f"announced by {host.interface}; what is on the way may be slower"
        used = max(host.rates.values())
        of_port = used / host.port_rate if host.carried > 0 else math.nan
        found += [
            *(Figure(f"{host.host} {way}", value, "bytes/s") for way, value in host.rates.items()),
            *(
                Figure(f"{host.host} {way} when busy", value, "bytes/s", note=read)
                for way, value in host.busy_rates.items()
            ),
            *(
                Figure(f"{host.host} {way} in bursts", value, "bytes/s", note=burst)
                for way, value in host.burst_rates.items()
            ),
            Figure(f"{host.host}, its port", host.port_rate, "bytes/s", note=port),
            Figure(f"{host.host}, share of its port", of_port, "share"),
            Figure(f"{host.host}, TCP segments sent again", host.retransmitted, "share"),
        ]
    return recorded(*found)


def cap_figures(cap: Cap | None, at_most: float) -> list[Figure]:
    if cap is None:
        return recorded(Figure("rate while all wait, at most", at_most, "bytes/s"))
    who = listed(list(cap.hosts)) if cap.hosts else ""
    hop = " to ".join(cap.hop) if cap.hop and not cap.hosts else ""
    return recorded(
        Figure("rate while all wait, at most", at_most, "bytes/s"),
        Figure("slowest link", who or hop or None, "", note=cap.reason),
    )
