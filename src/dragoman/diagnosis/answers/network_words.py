"""The answer about the network in sentences; `network_advice` says what to do about it."""

import math
from collections.abc import Mapping, Sequence

from dragoman.diagnosis.answers import stragglers, traffic
from dragoman.diagnosis.phrasing import bit_rate, listed, percent, rate, seconds, size
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.run.hosts import LOOPBACK
from dragoman.diagnosis.speed.bottleneck import (
    ALWAYS_THE_SAME,
    BOUND_SHARE,
    Shares,
    hindrances,
    shares_of,
)
from dragoman.diagnosis.speed.judgement import Judgement

TOLD_SHARE = 0.005
CAPPED_SHARE = 0.5
"""Of what the port says: a link that all wait for and that never carries more is capped."""


def answer_in_words(
    judgement: Judgement,
    nodes: Sequence[HostTraffic],
    ranks: int,
    missing_ranks: Mapping[int, int],
) -> str:
    sentences = [_verdict(judgement, ranks), _beside(judgement), _time_of_it(judgement)]
    if ranks > 1:
        sentences += [
            _traffic(nodes),
            cap_in_words(judgement, nodes),
            slowest_port_in_words(judgement, nodes),
            _sent_again(judgement, nodes),
        ]
    if missing_ranks:
        lacking = max(missing_ranks.values())
        sentences.append(
            f"Of {lacking} rank{'' if lacking == 1 else 's'} nothing was recorded, so the "
            "network's part may in truth be smaller."
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _verdict(judgement: Judgement, ranks: int) -> str:
    split, shares = judgement.split, shares_of(judgement.split)
    step = f"the mean step of {seconds(split.step_s)}"
    computing = f"computing takes {percent(shares.compute)}"
    match judgement.verdict:
        case "network-bound":
            return (
                f"The network is the bottleneck: of {step} it takes {seconds(split.network_s)} "
                f"({percent(shares.network)}) that no computing hides, while {computing}."
            )
        case "latency-bound":
            return (
                f"The way through the network is the bottleneck, not its rate: of {step} the ranks "
                f"wait {seconds(split.network_s)} ({percent(shares.network)}) for it, and so many "
                f"messages with nothing in them would take about as long; {computing}."
            )
        case "straggler":
            return _straggler(judgement, step)
        case "input-bound":
            own = " and each other's" if shares.input > 1.5 * shares.data else ""
            return (
                f"{_not_the_network(shares)}; the data is: of {step} the ranks wait "
                f"{percent(shares.input)} for their{own} data, while {computing}."
            )
    others = {
        "the network that it does not hide": shares.network,
        "waiting for the slowest rank": shares.straggling,
        "waiting for data": shares.data,
        "waiting for a checkpoint's copy": shares.checkpoint,
        "what is not timed by itself": shares.rest,
    }
    told = [f"{what} {percent(share)}" for what, share in others.items() if share >= TOLD_SHARE]
    rest = f"; {listed(told)}" if told else ""
    if ranks == 1:
        return f"There was one worker and so no traffic between nodes: of {step} {computing}{rest}."
    return f"The network is not the bottleneck: of {step} {computing}{rest}."


def _not_the_network(shares: Shares) -> str:
    if shares.network >= BOUND_SHARE:
        return "The network is not what holds the run back most"
    return "The network is not the bottleneck"


def _straggler(judgement: Judgement, step: str) -> str:
    split, late = judgement.split, judgement.late
    shares = shares_of(split)
    opening = _not_the_network(shares)
    waits = f"{seconds(split.straggling_s)} ({percent(shares.straggling)})"
    if late.share < ALWAYS_THE_SAME:
        whose = f" {stragglers.whose_waiting(late)}." if late.early else ""
        return (
            f"{opening}: of {step} the first rank waits {waits} for the last, which is now one and "
            f"now another.{whose}"
        )
    why = stragglers.because_of_data(late) if stragglers.is_because_of_data(split) else ""
    waited = f"of {step} the others wait {waits}"
    if late.are_several:
        return f"{opening}: {late.who} are slower than the others{why}; {waited} for them."
    return (
        f"{opening}: {late.who} is slower than the others{why}; it comes last in "
        f"{percent(late.step_share)} of the steps, and {waited} for it."
    )


def _beside(judgement: Judgement) -> str:
    """What else is large enough to be a verdict by itself."""
    split, late = judgement.split, judgement.late
    for_whom = late.who if late.share >= ALWAYS_THE_SAME else "the slowest rank"
    named = {
        "network-bound": ("the network takes", split.network_s),
        "straggler": (f"waiting for {for_whom} takes", split.straggling_s),
        "input-bound": ("waiting for data takes", split.data_s),
    }
    is_verdict = {judgement.verdict, "network-bound" if is_network(judgement) else ""}
    told = [
        f"{what} {seconds(lasts_s)} ({percent(share)})"
        for hindrance, share in hindrances(shares_of(split), late).items()
        if share >= BOUND_SHARE and hindrance not in is_verdict
        for what, lasts_s in [named[hindrance]]
    ]
    return f"Beside that {listed(told)}." if told else ""


def is_network(judgement: Judgement) -> bool:
    return judgement.verdict in ("network-bound", "latency-bound")


def _time_of_it(judgement: Judgement) -> str:
    since, until = judgement.since_step, judgement.until_step
    match since, until:
        case None, None:
            when = "in parts of the run"
        case _, None:
            when = f"since step {since:,}"
        case None, _:
            when = f"until step {until:,}"
        case _:
            when = f"from step {since:,} to step {until:,}"
    if judgement.stretches > 1:
        when += f", {judgement.stretches} times, and not in between"
    elif since is None and until is None:
        return ""
    return (
        f"That holds {when}; over the whole run the mean step took "
        f"{seconds(judgement.run_split.step_s)}, {percent(shares_of(judgement.run_split).network)} "
        "of it for the network."
    )


def _traffic(nodes: Sequence[HostTraffic]) -> str:
    if not nodes:
        return "How many bytes passed was not recorded."
    sent = [node.rates["sent"] for node in nodes]
    received = [node.rates["received"] for node in nodes]
    each = "Each node" if len(nodes) > 1 else f"{nodes[0].host}"
    words = (
        f"{each} sent {_range(sent)} and received {_range(received)} in the mean, "
        f"{size(max(node.bytes_per_step['sent'] for node in nodes))} a step"
    )
    if nodes[0].interface == LOOPBACK:
        words += ", all of it within the host"
    ports = [node.port_rate for node in nodes if not math.isnan(node.port_rate)]
    if ports:
        use = max(*sent, *received) / min(ports)
        words += f", {percent(use)} of the {bit_rate(min(ports))} that the port says it can"
    return words + "."


def _range(rates: Sequence[float]) -> str:
    low, high = min(rates), max(rates)
    return rate(high) if low > 0.95 * high else f"{rate(low)} to {rate(high)}"


def cap_in_words(judgement: Judgement, nodes: Sequence[HostTraffic]) -> str:
    """A port that promises what the way does not hold: nobody sees it without counting."""
    told = [node for node in nodes if not math.isnan(node.port_rate)]
    if judgement.verdict != "network-bound" or not told:
        return ""
    slowest = min(told, key=lambda node: node.port_rate)
    # All bytes within the waiting alone: faster than that they have not been.
    at_most = slowest.bytes_per_step["sent"] / judgement.split.network_s
    if at_most < CAPPED_SHARE * slowest.port_rate:
        return (
            f"{_port(slowest)}, and while all waited no more than {rate(at_most)} "
            f"({bit_rate(at_most)}) passed: something on the way, or another host of the ring, is "
            "slower than this port."
        )
    return ""


def slowest_port_in_words(judgement: Judgement, nodes: Sequence[HostTraffic]) -> str:
    """A ring is as fast as its slowest link."""
    told = sorted(
        (node for node in nodes if not math.isnan(node.port_rate)), key=lambda node: node.port_rate
    )
    if judgement.verdict != "network-bound" or cap_in_words(judgement, nodes) or len(told) < 2:
        return ""
    slowest, second = told[:2]
    if slowest.port_rate > CAPPED_SHARE * second.port_rate:
        return ""
    return f"{_port(slowest)}, the others {bit_rate(second.port_rate)} or more: all wait for it."


def _port(node: HostTraffic) -> str:
    return f"{node.interface} of {node.host} says {bit_rate(node.port_rate)}"


def _sent_again(judgement: Judgement, nodes: Sequence[HostTraffic]) -> str:
    again = traffic.retransmitted(nodes)
    if not is_network(judgement) or again <= traffic.MUCH_AGAIN:
        return ""
    return f"{percent(again)} of the packets had to be sent again."
