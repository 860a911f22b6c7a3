"""Who or what makes transfers slow: the matrix of pairs comes in, findings go out. Pure.

What i sends to j is the least of three: what i's port sends, what j's port receives, and what the
path between them carries. The most that a host reaches with any peer is what its port can do at
least. A port that stays below the others is accused only if a peer that it was measured with has
shown to be faster with a third host; a pair that stays below what both of its ports have shown is
the path. Two hosts have no third, so their port and path cannot be told apart, and that is said.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from dragoman.check.result import Finding, Transfer, Verdict
from dragoman.diagnosis.phrasing import bit_rate, listed

SLOW = 0.65
"""Of what others reach; below it something differs. Noise of 20 % either way makes 0.67."""
UNFIT = 0.5
"""Below it the host or pair at least doubles what the network takes of every step."""
CLASSES_BITS = (1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 4e10, 5e10, 1e11, 2e11, 4e11)
"""Speeds that ports are sold and set to."""
CLASS_LEAST, CLASS_MOST = 0.88, 1.0
"""Of its speed, what a port carries as payload: 94 to 99 % by the size of packets, less in VPNs."""
MORE_BY_SEVERAL = 1.5
"""Times one connection's rate; below it the difference is how connections share a queue."""

Rates = Mapping[tuple[str, str], float]
"""(sender, receiver) -> bytes per second."""


def rates_of(transfers: Iterable[Transfer]) -> Rates:
    """Returns what each way carries, whether by one connection or by several."""
    return {
        (t.sender, t.receiver): max(t.one_flow_bytes_per_s, t.several_flows_bytes_per_s)
        for t in transfers
    }


def port_findings(rates: Rates) -> list[Finding]:
    """Returns a finding for each host whose port is slow, or for the two of a pair."""
    if not rates:
        return []
    hosts = hosts_of(rates)
    if len(hosts) == 2:
        return _of_two(rates, *hosts)
    best = max(rates.values())
    slow = {
        way: {host for host in hosts if _is_port_slow(rates, host, way, best)}
        for way in ("send", "receive")
    }
    accused = slow["send"] | slow["receive"]
    if not accused:
        return []
    # Hosts that are slow in one direction alone show in the other what their ports can be.
    in_both = slow["send"] & slow["receive"]
    if 2 * len(in_both) > len(hosts):
        return [_most_are_slow(rates, in_both)]
    return [
        _slow_port(rates, host, [way for way in slow if host in slow[way]])
        for host in hosts
        if host in accused
    ]


def slow_pairs(rates: Rates) -> set[tuple[str, str]]:
    """Returns the ways that carry less than the ports at both ends have shown with others."""
    sends, receives = _most(rates, "send"), _most(rates, "receive")
    return {
        (sender, receiver)
        for (sender, receiver), rate in rates.items()
        if rate < SLOW * min(sends[sender], receives[receiver])
    }


def path_findings(rates: Rates) -> list[Finding]:
    """Returns what is wrong between hosts whose ports are good."""
    hosts = hosts_of(rates)
    if len(hosts) == 2 or not (slow := slow_pairs(rates)):
        return []
    if sides := _sides(hosts, rates, slow):
        return [_between_sides(rates, sides, slow)]
    sends, receives = _most(rates, "send"), _most(rates, "receive")
    found = []
    for one, other in combinations(hosts, 2):
        ways = [way for way in ((one, other), (other, one)) if way in slow]
        if not ways:
            continue
        rate = min(rates[way] for way in ways)
        usual = min(min(sends[sender], receives[receiver]) for sender, receiver in ways)
        if len(ways) == 2:
            what = f"Between {one} and {other} only {bit_rate(rate)} pass, in both directions"
        else:
            sender, receiver = ways[0]
            back = rates.get((receiver, sender))
            what = f"From {sender} to {receiver} only {bit_rate(rate)} pass" + (
                f", and {bit_rate(back)} the other way" if back else ""
            )
        found.append(
            Finding(
                subject="path",
                verdict=_verdict(rate / usual),
                sentence=f"{what}, though both reach {bit_rate(usual)} or more with others: the "
                "ports are good, and the path between these two is not; look at its switches, "
                "cables, routes and VPNs.",
                hosts=(one, other),
            )
        )
    return found


def flow_findings(transfers: Sequence[Transfer]) -> list[Finding]:
    """Returns whether a single connection falls behind several."""
    behind = [
        t
        for t in transfers
        if t.several_flows_bytes_per_s > MORE_BY_SEVERAL * t.one_flow_bytes_per_s
    ]
    if not behind:
        return []
    worst = min(behind, key=lambda t: t.one_flow_bytes_per_s / t.several_flows_bytes_per_s)
    window = worst.one_flow_bytes_per_s * worst.round_trip_s
    if worst.round_trip_s > 0.002:
        cause = (
            f"with a round trip of {1000 * worst.round_trip_s:.3g} ms its window is limited to "
            f"about {window / 1000:,.0f} kB; raise net.ipv4.tcp_rmem and tcp_wmem on both hosts"
        )
    else:
        cause = (
            "something limits each connection, as some clouds do, or one core cannot do more; let "
            "NCCL use several with NCCL_NSOCKS_PERTHREAD=4"
        )
    everywhere = len(behind) == len(transfers)
    where = "everywhere" if everywhere else f"on {len(behind)} of {len(transfers)} ways"
    hosts = sorted({name for t in behind for name in (t.sender, t.receiver)})
    return [
        Finding(
            subject="flows",
            verdict="warning",
            sentence=f"One connection carries much less than several {where}, such as "
            f"{bit_rate(worst.one_flow_bytes_per_s)} instead of "
            f"{bit_rate(worst.several_flows_bytes_per_s)} from {worst.sender} to "
            f"{worst.receiver}: {cause}.",
            hosts=() if everywhere else tuple(hosts),
        )
    ]


def class_of(bytes_per_s: float) -> str | None:
    """Returns the speed that a port with this payload is set to; None if it fits none."""
    for bits in CLASSES_BITS:
        if CLASS_LEAST <= 8 * bytes_per_s / bits <= CLASS_MOST:
            return bit_rate(bits / 8)
    return None


def hosts_of(rates: Rates) -> list[str]:
    return list(dict.fromkeys(name for pair in rates for name in pair))


def _most(rates: Rates, way: str, but: str | None = None) -> dict[str, float]:
    """Returns by host the most that it sends to, or receives from, any peer except `but`."""
    most: dict[str, float] = {}
    for (sender, receiver), rate in rates.items():
        host, peer = (sender, receiver) if way == "send" else (receiver, sender)
        if peer != but:
            most[host] = max(rate, most.get(host, 0.0))
    return most


def _is_port_slow(rates: Rates, host: str, way: str, best: float) -> bool:
    own = _most(rates, way).get(host)
    if own is None or own >= SLOW * best:
        return False
    back = "receive" if way == "send" else "send"
    # What its peers can do is known from what they do with third hosts alone.
    of_peers = {peer: rate for peer, rate in _most(rates, back, but=host).items() if peer != host}
    met = {peer for peer in of_peers if (_way(host, peer, way) in rates)}
    return any(own < SLOW * of_peers[peer] for peer in met)


def _way(host: str, peer: str, way: str) -> tuple[str, str]:
    return (host, peer) if way == "send" else (peer, host)


def _slow_port(rates: Rates, host: str, ways: Sequence[str]) -> Finding:
    sends, receives = _most(rates, "send")[host], _most(rates, "receive")[host]
    rate = min({"send": sends, "receive": receives}[way] for way in ways)
    usual = _usual(rates)
    if ways == ["send"]:
        does = f"{host} sends at {bit_rate(sends)} to everyone and receives at {bit_rate(receives)}"
        where = "the sending direction of its port"
    elif ways == ["receive"]:
        does = (
            f"{host} receives at {bit_rate(receives)} from everyone and sends at {bit_rate(sends)}"
        )
        where = "the receiving direction of its port"
    elif rate > 0.9 * max(sends, receives):
        does, where = f"{host} sends and receives at {bit_rate(rate)} with everyone", "its port"
    else:
        does = f"{host} sends at {bit_rate(sends)} and receives at {bit_rate(receives)} at most"
        where = "its port"
    named = class_of(rate)
    cause = f"{where} is set to {named}" if named else f"{where} is limited"
    return Finding(
        subject="port",
        verdict=_verdict(rate / usual),
        sentence=f"{does}, the others at {bit_rate(usual)}: {cause}. Every step waits for it; "
        "raise the limit at the provider or the switch, check its cable, or leave it out.",
        hosts=(host,),
    )


def _most_are_slow(rates: Rates, slow: Collection[str]) -> Finding:
    usual = _typical([r for (a, b), r in rates.items() if a in slow or b in slow])
    named = class_of(usual)
    fast = sorted(set(hosts_of(rates)) - set(slow))
    return Finding(
        subject="port",
        verdict="warning",
        sentence=f"{listed(fast)} reach {bit_rate(_usual(rates))} with each other, and most hosts "
        f"no more than {bit_rate(usual)}: either the ports of {listed(sorted(slow))} are "
        f"{f'set to {named}' if named else 'limited'}, or the fast ones share a machine or a "
        "switch. Every step goes at the pace of the slow ones.",
        hosts=tuple(sorted(slow)),
    )


def _of_two(rates: Rates, one: str, other: str) -> list[Finding]:
    there, back = rates.get((one, other)), rates.get((other, one))
    if not there or not back or min(there, back) >= SLOW * max(there, back):
        return []
    sender, receiver = (one, other) if there < back else (other, one)
    rate, usual = min(there, back), max(there, back)
    named = class_of(rate)
    limit = f"a limit of {named}" if named else "a limit"
    return [
        Finding(
            subject="port",
            verdict=_verdict(rate / usual),
            sentence=f"From {sender} to {receiver} {bit_rate(rate)} pass, and {bit_rate(usual)} "
            f"the other way: {limit} on what {sender} sends, on what {receiver} receives, or "
            "between them. With two hosts these cannot be told apart; a third would show it.",
            hosts=(one, other),
        )
    ]


def _sides(
    hosts: Sequence[str], rates: Rates, slow: Collection[tuple[str, str]]
) -> list[list[str]] | None:
    """Returns groups of hosts that are fast among themselves and slow with all other groups, in
    both directions or all in the same one."""
    groups: list[list[str]] = []
    for host in hosts:
        for group in groups:
            pairs = [way for member in group for way in ((host, member), (member, host))]
            if not any(way in slow for way in pairs):
                group.append(host)
                break
        else:
            groups.append([host])
    if len(groups) < 2 or any(len(group) == 1 for group in groups):
        return None
    for one, other in combinations(groups, 2):
        ways = [
            {(a, b) in slow for a in x for b in y if (a, b) in rates}
            for x, y in ((one, other), (other, one))
        ]
        if {True} not in ways or {True, False} in ways:
            return None
    return groups


def _between_sides(
    rates: Rates, sides: Sequence[Sequence[str]], slow: Collection[tuple[str, str]]
) -> Finding:
    across = _typical([rates[way] for way in slow])
    within = _typical([rate for way, rate in rates.items() if way not in slow])
    groups = [f"({', '.join(group)})" for group in sides]
    side_of = {host: number for number, group in enumerate(sides) for host in group}
    ways = {(side_of[sender], side_of[receiver]) for sender, receiver in slow}
    where = f"Between the groups {listed(groups)}"
    if len(ways) == 1:
        sender, receiver = ways.pop()
        where = f"From the group {groups[sender]} to {groups[receiver]}"
    return Finding(
        subject="path",
        verdict=_verdict(across / within),
        sentence=f"{where} only {bit_rate(across)} pass, and {bit_rate(within)} within each: what "
        "connects them, an uplink between racks or sites, is the limit; take hosts of one "
        'group, or set sync.mode = "local", which sends less.',
    )


def _usual(rates: Rates) -> float:
    """Returns what good ports reach."""
    best = max(rates.values())
    return _typical([rate for rate in rates.values() if rate >= SLOW * best])


def _verdict(share: float) -> Verdict:
    return "unfit" if share < UNFIT else "warning"


def _typical(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
