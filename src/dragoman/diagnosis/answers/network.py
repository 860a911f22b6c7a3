"""What was the network traffic, and was the network the bottleneck?"""

import math
from collections.abc import Sequence

import numpy as np

from dragoman.diagnosis.answers.network_advice import advice_on
from dragoman.diagnosis.findings import Confidence, Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import bit_rate, count, listed, percent, rate, seconds, size
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.run.hosts import LOOPBACK
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import (
    BOUND_SHARE,
    CLEAR_SHARE,
    CLEARLY_FREE_SHARE,
    FEW_STEPS,
    Late,
    Shares,
    candidates,
    data_makes_late,
    shares_of,
)
from dragoman.diagnosis.speed.lateness import because_of_data, names_of_ranks, whose_waiting
from dragoman.diagnosis.speed.link_use import (
    CAPPED_SHARE,
    MUCH_RETRANSMITTED,
    by_port,
    capped_host,
    link_between,
    most_retransmitted,
    rate_while_waiting,
)
from dragoman.diagnosis.speed.phases import RunBottleneck, bottleneck_of
from dragoman.diagnosis.speed.what_if import ProjectedSteps, projected_steps

CLEARLY_LARGER = 0.10
"""Of the step: so much more than the second, the largest candidate is the verdict without doubt."""
WORTH_NAMING = 0.005
"""Of the step."""


def answer(run: RunFacts) -> Finding:
    steps, hosts = run.step_parts, run.host_traffic
    if not len(steps):
        return unknown(why_no_common_step(run.steps))
    link = link_between(hosts, run.record.model_size.gradient_bytes)
    rows = np.flatnonzero(steps.usual)
    ranks = max(attempt.ranks for attempt in run.attempts)
    split = steps.mean(rows)
    evidence = [*_step_figures(split, ranks), *_traffic_figures(hosts)]
    if ranks > 1 and math.isnan(split.network_s):
        return _without_communication(run, split, evidence)
    found = bottleneck_of(steps, rows, link, names_of_ranks(run.attempts))
    projected = projected_steps(found.split, link)
    if found.since_step is not None or found.until_step is not None:
        evidence = [*_phase_figures(found), *evidence]
    if ranks > 1 and found.split.network_s > 0:
        evidence += _projected_figures(projected)
    missing_ranks = max(steps.missing_ranks.values(), default=0)
    return Finding(
        verdict=found.verdict,
        confidence=confidence_of(shares_of(found.split), found.late, len(rows), missing_ranks > 0),
        sentence=_sentence(found, hosts, ranks, missing_ranks),
        evidence=evidence,
        advice=advice_on(found, hosts, projected),
    )


def confidence_of(shares: Shares, late: Late, steps: int, lacks_ranks: bool) -> Confidence:
    if steps < FEW_STEPS:
        return "low"
    largest, second, *_ = candidates(shares, late).values()
    if second >= BOUND_SHARE and largest - second < CLEARLY_LARGER:
        return "medium"  # two hold it back about alike
    is_clear = largest >= CLEAR_SHARE or largest <= CLEARLY_FREE_SHARE
    if shares.checkpoint + shares.rest >= BOUND_SHARE > largest:
        is_clear = False  # much of the step is neither computing nor any of the other verdicts
    return "high" if is_clear and not lacks_ranks else "medium"


def _without_communication(run: RunFacts, split: StepSplit, evidence: Sequence[Figure]) -> Finding:
    because = "this run has not recorded how long its ranks waited for the network"
    if run.config.training.sharding == "full":
        because = (
            "with sharded states the ranks communicate all through forward and backward, so that "
            "no clock can tell the network's part from computing"
        )
    shares = shares_of(split)
    if shares.data < BOUND_SHARE:
        return unknown(because, evidence)
    sentence = (
        f"Each step waits for its data during {percent(shares.data)} of its time. How much the "
        f"network takes is not known, because {because}."
    )
    what_to_do = advice.on_slow_data()
    return Finding("input-bound", "medium", sentence, evidence, what_to_do)


def _sentence(
    found: RunBottleneck, hosts: Sequence[HostTraffic], ranks: int, missing_ranks: int
) -> str:
    sentences = [_verdict_in_words(found, ranks), _second_in_words(found), _when_in_words(found)]
    if ranks > 1:
        sentences += [
            _traffic_in_words(hosts),
            _slow_port_in_words(found, hosts),
            _retransmitted_in_words(found, hosts),
        ]
    if missing_ranks:
        sentences.append(
            f"Nothing was recorded of {count(missing_ranks, 'rank')}, so the network's part may be "
            "smaller than this."
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _verdict_in_words(found: RunBottleneck, ranks: int) -> str:
    split, shares = found.split, shares_of(found.split)
    step = f"the mean step of {seconds(split.step_s)}"
    computing = f"computing takes {percent(shares.compute)}"
    match found.verdict:
        case "network-bound":
            return (
                f"The network is the bottleneck: of {step} it takes {seconds(split.network_s)} "
                f"({percent(shares.network)}) that no computing hides, while {computing}."
            )
        case "latency-bound":
            return (
                f"The latency of the network is the bottleneck, not its rate: of {step} the ranks "
                f"wait {seconds(split.network_s)} ({percent(shares.network)}) for it, and as many "
                f"empty messages would take about as long; {computing}."
            )
        case "straggler":
            return _straggler_in_words(found, step)
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
        "what is not timed separately": shares.rest,
    }
    named = [f"{what} {percent(share)}" for what, share in others.items() if share >= WORTH_NAMING]
    rest = f"; {listed(named)}" if named else ""
    if ranks == 1:
        return f"One worker sends nothing to other nodes: of {step} {computing}{rest}."
    return f"The network is not the bottleneck: of {step} {computing}{rest}."


def _not_the_network(shares: Shares) -> str:
    if shares.network >= BOUND_SHARE:
        return "The network is not what holds the run back most"
    return "The network is not the bottleneck"


def _straggler_in_words(found: RunBottleneck, step: str) -> str:
    split, late = found.split, found.late
    shares = shares_of(split)
    opening = _not_the_network(shares)
    waits = f"{seconds(split.straggling_s)} ({percent(shares.straggling)})"
    if not late.is_always_the_same:
        words = (
            f"{opening}: of {step} the first rank waits {waits} for the last one, which changes "
            "from step to step."
        )
        return f"{words} {whose_waiting(late)}." if late.early else words
    why = because_of_data(late) if data_makes_late(split) else ""
    waited = f"of {step} the others wait {waits}"
    if late.are_several:
        return f"{opening}: {late.who} are slower than the others{why}; {waited} for them."
    return (
        f"{opening}: {late.who} is slower than the others{why}; it comes last in "
        f"{percent(late.step_share)} of the steps, and {waited} for it."
    )


def _second_in_words(found: RunBottleneck) -> str:
    """Names what else is large enough to be a verdict by itself."""
    split, late = found.split, found.late
    for_whom = late.who if late.is_always_the_same else "the slowest rank"
    named = {
        "network-bound": ("the network takes", split.network_s),
        "straggler": (f"waiting for {for_whom} takes", split.straggling_s),
        "input-bound": ("waiting for data takes", split.data_s),
    }
    first = "network-bound" if found.verdict == "latency-bound" else found.verdict
    others = [
        f"{what} {seconds(lasts_s)} ({percent(share)})"
        for verdict, share in candidates(shares_of(split), late).items()
        if share >= BOUND_SHARE and verdict != first
        for what, lasts_s in [named[verdict]]
    ]
    return f"In addition, {listed(others)}." if others else ""


def _when_in_words(found: RunBottleneck) -> str:
    since, until = found.since_step, found.until_step
    match since, until:
        case None, None:
            when = "in parts of the run"
        case _, None:
            when = f"since step {since:,}"
        case None, _:
            when = f"until step {until:,}"
        case _:
            when = f"from step {since:,} to step {until:,}"
    if found.phases > 1:
        when += f", {found.phases} times, and not in between"
    elif since is None and until is None:
        return ""
    return (
        f"That holds {when}; over the whole run the mean step took "
        f"{seconds(found.run_split.step_s)}, {percent(shares_of(found.run_split).network)} "
        "of it for the network."
    )


def _traffic_in_words(hosts: Sequence[HostTraffic]) -> str:
    if not hosts:
        return "How many bytes passed was not recorded."
    sent = [host.rates["sent"] for host in hosts]
    received = [host.rates["received"] for host in hosts]
    each = "Each node" if len(hosts) > 1 else hosts[0].host
    words = (
        f"{each} sent {_range(sent)} and received {_range(received)} on average, "
        f"{size(max(host.bytes_per_step['sent'] for host in hosts))} a step"
    )
    if hosts[0].interface == LOOPBACK:
        words += ", all of it within the host"
    for slowest in by_port(hosts)[:1]:
        use = percent(max(*sent, *received) / slowest.port_rate)
        words += f", {use} of the {bit_rate(slowest.port_rate)} that the port announces"
    return words + "."


def _range(rates: Sequence[float]) -> str:
    low, high = min(rates), max(rates)
    return rate(high) if low > 0.95 * high else f"{rate(low)} to {rate(high)}"


def _slow_port_in_words(found: RunBottleneck, hosts: Sequence[HostTraffic]) -> str:
    """Names the port that promises more than passes, or the one that all wait for."""

    def announced(host: HostTraffic) -> str:
        return f"{host.interface} of {host.host} announces {bit_rate(host.port_rate)}"

    if capped := capped_host(found, hosts):
        at_most = rate_while_waiting(found, capped)
        return (
            f"{announced(capped)}, and while all waited no more than {rate(at_most)} "
            f"({bit_rate(at_most)}) passed: something on the way, or another host of the ring, is "
            "slower than this port."
        )
    ports = by_port(hosts)
    if found.verdict != "network-bound" or len(ports) < 2:
        return ""
    slowest, second = ports[:2]
    if slowest.port_rate > CAPPED_SHARE * second.port_rate:
        return ""
    others = f"the others {bit_rate(second.port_rate)} or more"
    return f"{announced(slowest)}, {others}: all wait for it."  # a ring is as fast as its slowest


def _retransmitted_in_words(found: RunBottleneck, hosts: Sequence[HostTraffic]) -> str:
    share = most_retransmitted(hosts)
    is_network = found.verdict in ("network-bound", "latency-bound")
    if not is_network or share <= MUCH_RETRANSMITTED:
        return ""
    return f"{percent(share)} of the packets were sent again."


def _step_figures(split: StepSplit, ranks: int) -> list[Figure]:
    shares = shares_of(split)
    named = [
        ("mean step", split.step_s, math.nan),
        ("computing", split.compute_s, shares.compute),
        ("exposed network", split.network_s, shares.network),
        ("waiting for stragglers", split.straggling_s, shares.straggling),
        ("waiting for data", split.data_s, shares.data),
        ("waiting for a checkpoint's copy", split.checkpoint_s, shares.checkpoint),
        ("rest of the step", split.rest_s, shares.rest),
    ]
    found = []
    for name, lasts_s, share in named:
        found += [Figure(name, lasts_s, "s"), Figure(f"{name} share", share, "share")]
    return [*recorded(*found), Figure("ranks", ranks, "")]


def _phase_figures(found: RunBottleneck) -> list[Figure]:
    steps = [("since step", found.since_step), ("until step", found.until_step)]
    return [
        *(Figure(name, step, "steps") for name, step in steps if step is not None),
        Figure("mean step while it holds", found.split.step_s, "s"),
        Figure("exposed network share while it holds", shares_of(found.split).network, "share"),
    ]


def _traffic_figures(hosts: Sequence[HostTraffic]) -> list[Figure]:
    found = []
    for host in hosts:
        read = f"the most in one reading of {host.interface}"
        port = f"announced by {host.interface}; what is on the way may be slower"
        used = max(host.rates.values())
        of_carried = used / host.carried if host.carried > 0 else math.nan
        of_port = used / host.port_rate if host.carried > 0 else math.nan
        found += [
            *(Figure(f"{host.host} {way}", rate, "bytes/s") for way, rate in host.rates.items()),
            *(
                Figure(f"{host.host} {way} at most", rate, "bytes/s", note=read)
                for way, rate in host.peak_rates.items()
            ),
            Figure(f"{host.host}, its port", host.port_rate, "bytes/s", note=port),
            Figure(f"{host.host}, share of the highest rate seen", of_carried, "share"),
            Figure(f"{host.host}, share of its port", of_port, "share"),
            Figure(f"{host.host}, TCP segments sent again", host.retransmitted, "share"),
        ]
    return recorded(*found)


def _projected_figures(projected: ProjectedSteps) -> list[Figure]:
    same = "for the same number of tokens"
    double_s, fourfold_s = projected.double_updates_s, projected.fourfold_updates_s
    hidden = "beside backward, from the bytes and the highest rate"
    return recorded(
        Figure("step with a link ten times faster", projected.faster_link_s, "s"),
        Figure("step with bf16 on the wire", projected.half_bytes_s, "s"),
        Figure("step with updates twice as large", double_s, "s", note=same),
        Figure("step with updates four times as large", fourfold_s, "s", note=same),
        Figure("hidden network", projected.hidden_s, "s", note=hidden),
    )
