"""The network as a whole: latency, ways that carry nothing, and whether its speed is enough for the
recipe. Measurements come in, findings go out. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.check.ports import SLOW, UNFIT, Rates, class_of, hosts_of, rates_of
from dragoman.check.result import Computing, Finding, HostFacts, Transfer, Verdict
from dragoman.check.workload import Workload
from dragoman.diagnosis.phrasing import bit_rate, listed, seconds, size
from dragoman.forecast.sync_modes import LARGEST_SHARE

FAR_TIMES, FAR_S = 3.0, 0.003
"""A round trip that is so many times and so many seconds above the usual one takes another way.
Below 3 ms, busy processors make such differences."""
SITES_S = 0.005
"""From here on hosts are not in one place: light in glass goes 500 km there and back."""
STEP_EFFICIENCY = 0.4
"""Of the speed of large products, what a training step reaches: `make bench-train` has measured
0.61 to 0.65 on a CPU for a model of 7.6 million parameters; smaller ones reach less."""


class Failure(NamedTuple):
    """A way that could not be measured."""

    sender: str
    receiver: str
    why: str
    may_listen: bool = True
    """False: the receiver was refused a port, whoever would have sent."""


def latency_findings(transfers: Sequence[Transfer]) -> list[Finding]:
    if not transfers:
        return []
    # Not the median: of four hosts, one that is far away takes part in half of all pairs.
    near_s = sorted(t.round_trip_s for t in transfers)[len(transfers) // 10]
    limit_s = max(FAR_TIMES * near_s, near_s + FAR_S)
    far = [t for t in transfers if t.round_trip_s > limit_s]
    usual_s = statistics.median(t.round_trip_s for t in transfers if t.round_trip_s <= limit_s)
    if not far:
        apart = usual_s > SITES_S
        return [
            Finding(
                subject="latency",
                verdict="warning" if apart else "good",
                sentence=f"A message takes {seconds(usual_s)} there and back"
                + (
                    ": the hosts are not in one place, and every collective of a step waits for "
                    'that; larger updates or sync.mode = "local" need fewer of them.'
                    if apart
                    else "."
                ),
            )
        ]
    rates = rates_of(transfers)
    worst_s = max(t.round_trip_s for t in far)
    pairs = {frozenset((t.sender, t.receiver)) for t in far}
    hosts = hosts_of(rates)
    alone = [
        host
        for host in hosts
        if len(hosts) > 2 and all(frozenset((host, o)) in pairs for o in hosts if o != host)
    ]
    who = (
        f"{alone[0]} and everyone else"
        if len(alone) == 1
        else listed(sorted(" and ".join(sorted(pair)) for pair in pairs)[:3])
    )
    is_slow = any(rates[t.sender, t.receiver] < SLOW * max(rates.values()) for t in far)
    return [
        Finding(
            subject="latency",
            verdict="warning",
            sentence=f"Between {who} a message takes {seconds(worst_s)} there and back, and "
            f"{seconds(usual_s)} between the others"
            + ("" if is_slow else ", without loss of bandwidth")
            + ": their traffic takes a longer way, over another site, a VPN or a busy router; "
            "check the route and the addresses in the host list.",
            hosts=tuple(alone) if len(alone) == 1 else tuple(sorted({n for p in pairs for n in p})),
        )
    ]


def failure_findings(failures: Sequence[Failure]) -> list[Finding]:
    """Returns one finding for each host that gets no port, and for each pair of others that cannot
    exchange anything."""
    refused = {failure.receiver: failure.why for failure in failures if not failure.may_listen}
    whys: dict[tuple[str, ...], str] = {}
    for failure in failures:
        if failure.may_listen and not refused.keys() & {failure.sender, failure.receiver}:
            whys.setdefault(tuple(sorted((failure.sender, failure.receiver))), failure.why)
    return [
        Finding(subject="port", verdict="unfit", sentence=f"{why}.", hosts=(name,))
        for name, why in refused.items()
    ] + [
        Finding(
            subject="path",
            verdict="unfit",
            sentence=f"Nothing could be measured between {one} and {other}: {why}. Training uses "
            "ports above 1024 between all hosts; check firewalls, security groups and routes.",
            hosts=(one, other),
        )
        for (one, other), why in whys.items()
    ]


def announced_findings(hosts: Sequence[HostFacts]) -> list[Finding]:
    """Returns hosts whose interfaces themselves announce less than those of the others."""
    known = {host.name: host.link_bytes_per_s for host in hosts if host.link_bytes_per_s}
    best = max(known.values(), default=0.0)
    return [
        Finding(
            subject="port",
            verdict=_verdict(link / best),
            sentence=f"{name} is connected at {bit_rate(link)}, as its interface announces, and "
            f"others at {bit_rate(best)}; check its cable, the port of its switch, and its "
            "settings.",
            hosts=(name,),
        )
        for name, link in known.items()
        if link < SLOW * best
    ]


def link_findings(
    transfers: Sequence[Transfer],
    hosts: Sequence[HostFacts],
    workload: Workload | None,
    computing: Sequence[Computing],
    are_ports_alike: bool,
) -> list[Finding]:
    """Returns whether the pace of the network is enough: for the recipe, or for what interfaces
    announce."""
    if not transfers:
        return []
    rates = rates_of(transfers)
    pace = _pace(rates)
    if workload:
        return [_for_recipe(pace, hosts, workload, computing)]
    announced = [host.link_bytes_per_s for host in hosts if host.link_bytes_per_s]
    if are_ports_alike and announced and pace < SLOW * min(announced):
        named = class_of(pace)
        return [
            Finding(
                subject="link",
                verdict="warning",
                sentence=f"All hosts exchange {bit_rate(pace)}, and their interfaces announce "
                f"{bit_rate(min(announced))}: something between them limits all alike"
                f"{f' to {named}' if named else ''}, the provider, a switch or other traffic; "
                "name a recipe to see what it makes of a step.",
            )
        ]
    named = class_of(pace)
    what = "All hosts exchange" if are_ports_alike else "Steps go at the pace of the slowest host,"
    return [
        Finding(
            subject="link",
            verdict="good",
            sentence=f"{what} about {bit_rate(pace)}"
            f"{f', as ports of {named} do' if named else ''}; name a recipe to see whether that is "
            "enough.",
        )
    ]


def _for_recipe(
    pace: float, hosts: Sequence[HostFacts], workload: Workload, computing: Sequence[Computing]
) -> Finding:
    sending_s = workload.bytes_per_step / pace
    step_s, source = _step_s(hosts, workload, computing)
    figures = (
        f"A step of {workload.recipe} sends {size(workload.bytes_per_step)} from each host, "
        f"{seconds(sending_s)} at the {bit_rate(pace)} of the slowest"
    )
    if step_s is None:
        return Finding(subject="link", verdict="good", sentence=f"{figures}.")
    share = sending_s / step_s
    verdict: Verdict = "good"
    if share > LARGEST_SHARE:
        verdict = "unfit" if share > 1.0 else "warning"
    ends = {
        "good": "the link is fast enough.",
        "warning": "a part of that will be waited for; see `dragoman plan` for other modes.",
        "unfit": "the hosts would mostly wait for the network; use faster links, fewer hosts, or a "
        "mode that sends less (`dragoman plan` compares them).",
    }
    return Finding(
        subject="link",
        verdict=verdict,
        sentence=f"{figures}, beside {seconds(step_s)} of computing ({source}): {ends[verdict]}",
    )


def _step_s(
    hosts: Sequence[HostFacts], workload: Workload, computing: Sequence[Computing]
) -> tuple[float | None, str]:
    """Returns what computing takes of a step, and how that is known."""
    if computing:
        return max(statistics.median(worker.step_s) for worker in computing), "measured"
    speeds = [host.gemm_flops_per_s for host in hosts if host.gemm_flops_per_s]
    ranks = sum(host.workers for host in hosts)
    if len(speeds) < len(hosts) or not ranks:
        return None, ""
    share = workload.flops_per_step / ranks
    return share / (STEP_EFFICIENCY * min(speeds)), "estimated from the speed of its devices"


def _pace(rates: Rates) -> float:
    """Returns what the slowest host exchanges at least with the best of its peers: a ring can be
    laid around single bad paths, and never around a port."""
    best: Mapping[tuple[str, str], float] = {
        (way, host): max(
            rate for pair, rate in rates.items() if pair[0 if way == "send" else 1] == host
        )
        for way, place in (("send", 0), ("receive", 1))
        for host in {pair[place] for pair in rates}
    }
    return min(best.values())


def _verdict(share: float) -> Verdict:
    return "unfit" if share < UNFIT else "warning"
