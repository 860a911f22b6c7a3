"""The answer about the network in sentences, and what to do about it."""

import math
from collections.abc import Mapping, Sequence

from dragoman.diagnosis import stragglers
from dragoman.diagnosis.bottleneck import ALWAYS_THE_SAME, BOUND_SHARE, Link, shares_of
from dragoman.diagnosis.instruments import LOOPBACK
from dragoman.diagnosis.judgement import Judgement
from dragoman.diagnosis.node_traffic import NodeTraffic
from dragoman.diagnosis.whatif import WhatIf
from dragoman.diagnosis.wording import bit_rate, listed, percent, rate, seconds, size

TOLD_SHARE = 0.005
CAPPED_SHARE = 0.5
"""Of what the port says: a link that all wait for and that never carries more is capped."""


def answer_in_words(
    judgement: Judgement,
    nodes: Sequence[NodeTraffic],
    link: Link,
    ranks: int,
    missing_ranks: Mapping[int, int],
) -> str:
    sentences = [_verdict(judgement, ranks), _time_of_it(judgement)]
    if ranks > 1:
        sentences += [_traffic(nodes), _cap(judgement, nodes)]
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
                f"The network is not the bottleneck, the data is: of {step} the ranks wait "
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


def _straggler(judgement: Judgement, step: str) -> str:
    split, late = judgement.split, judgement.late
    share = percent(shares_of(split).straggling)
    if late.share < ALWAYS_THE_SAME:
        return (
            f"The network is not the bottleneck: of {step} the first rank waits "
            f"{seconds(split.straggling_s)} ({share}) for the last, which is now one and now "
            "another."
        )
    why = stragglers.because_of_data(late) if split.late_data_s > split.straggling_s / 2 else ""
    waited = f"of {step} the others wait {seconds(split.straggling_s)} ({share})"
    if late.are_several:
        return (
            f"The network is not the bottleneck: {late.who} are slower than the others{why}; "
            f"{waited} for them."
        )
    return (
        f"The network is not the bottleneck: {late.who} is slower than the others{why}; it comes "
        f"last in {percent(late.step_share)} of the steps, and {waited} for it."
    )


def _time_of_it(judgement: Judgement) -> str:
    since, until = judgement.since_step, judgement.until_step
    if since is None and until is None:
        return ""
    when = [f"since step {since:,}"] if since is not None else []
    when += [f"until step {until:,}"] if until is not None else []
    return (
        f"That holds {' and '.join(when)}; over the whole run the mean step took "
        f"{seconds(judgement.run_split.step_s)}, {percent(shares_of(judgement.run_split).network)} "
        "of it for the network."
    )


def _traffic(nodes: Sequence[NodeTraffic]) -> str:
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


def _cap(judgement: Judgement, nodes: Sequence[NodeTraffic]) -> str:
    """A port that promises what the way does not hold: nobody sees it without counting."""
    if judgement.verdict != "network-bound":
        return ""
    for node in nodes:
        # All bytes within the waiting alone: faster than that they have not been.
        at_most = node.bytes_per_step["sent"] / judgement.split.network_s
        if at_most < CAPPED_SHARE * node.port_rate:
            return (
                f"{node.interface} of {node.host} says {bit_rate(node.port_rate)}, and while all "
                f"waited for it no more than {rate(at_most)} ({bit_rate(at_most)}) passed: "
                "something on the way is slower than the port."
            )
    return ""


def advice_on(judgement: Judgement, nodes: Sequence[NodeTraffic], link: Link, if_s: WhatIf) -> str:
    fewer = (
        f"updates twice as large {percent(if_s.saving(if_s.double_updates_s))}, four times "
        f"{percent(if_s.saving(if_s.fourfold_updates_s))}"
    )
    match judgement.verdict:
        case "network-bound":
            capped = (
                "Find out what limits the rate between the hosts. "
                if _cap(judgement, nodes)
                else ""
            )
            return (
                f"{capped}Of the time for the same tokens, bf16 on the wire would save about "
                f"{percent(if_s.saving(if_s.half_bytes_s))}, a link ten times faster "
                f"{percent(if_s.saving(if_s.faster_link_s))}, {fewer}."
            )
        case "latency-bound":
            return (
                "A faster link would change little. Put the hosts closer together, or let "
                f"gradients travel less often: of the time for the same tokens, {fewer} would be "
                "saved."
            )
        case "straggler" if judgement.late.share >= ALWAYS_THE_SAME:
            saved = shares_of(judgement.split).straggling
            return (
                f"{stragglers.advice_on(judgement.late)} As fast as the others, "
                f"{percent(saved)} of each step would be saved."
            )
        case "straggler":
            return (
                "See what else runs on the hosts; micro-batches that differ much in size also "
                "make ranks wait for each other."
            )
        case "input-bound":
            return (
                "See what the processes that read the data wait for: the disk, the network that "
                "the files come over, or a processor that others use too."
            )
    shares = shares_of(judgement.split)
    if max(0.0 if math.isnan(share) else share for share in shares[1:6]) >= BOUND_SHARE / 2:
        return ""
    return "Only faster devices, or more of them, would make this run faster."
