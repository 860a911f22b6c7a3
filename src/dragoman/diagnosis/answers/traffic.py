"""How does the time of a step go together with the network traffic between the nodes?"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.estimate import Estimate
from dragoman.diagnosis.findings import Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import percent, rate, seconds, size
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.run.steps import StepSplit, is_hang
from dragoman.diagnosis.speed.bottleneck import (
    BOUND_SHARE,
    FEW_STEPS,
    Link,
    latency_explains,
    shares_of,
)
from dragoman.diagnosis.speed.link_use import (
    MUCH_RETRANSMITTED,
    counted_against_predicted,
    link_between,
    most_retransmitted,
)
from dragoman.diagnosis.speed.series import correlation, varies
from dragoman.distributed.ring_bytes import bytes_per_step
from dragoman.telemetry.read.tables import group_column

CLEAR = 0.3
"""A correlation nearer to zero than this explains less than a tenth of the scatter."""
MUCH_SCATTER = 0.05


class Correlations(NamedTuple):
    """Of the first host that has counted. None: one of the two does not vary, or too few steps."""

    with_rate: Estimate | None
    """Of a step's time with its bytes a second."""
    with_bytes: Estimate | None
    scatter: float
    """Of the bytes from step to step, relative."""
    steps: int


def answer(run: RunFacts) -> Finding:
    if not len(run.steps):
        return unknown("no step has been recorded")
    if max(attempt.ranks for attempt in run.attempts) == 1:
        sentence = "There was one worker, so nothing had to travel between nodes."
        return Finding("no traffic", "high", sentence, [])
    hosts = run.host_traffic
    verdict = counted_against_predicted(hosts, float(run.steps["step_s"].mean()))
    if verdict is None:
        predicted = Figure("predicted per step", predicted_bytes(run), "bytes", note=_formula(run))
        return unknown("the bytes on the network were not counted", [predicted])
    if math.isnan(_mean(hosts, "predicted")):
        sent = Figure("sent per step", _mean(hosts, "sent"), "bytes")
        return unknown("how much had to be sent was not recorded", [sent])
    correlations = correlations_of(run)
    steps = run.step_parts
    split = steps.mean(np.flatnonzero(steps.usual)) if len(steps) else None
    link = link_between(hosts, run.record.model_size.gradient_bytes)
    explanation = _explanation(hosts, correlations, split, link)
    return Finding(
        verdict=verdict,
        confidence="high" if len(run.steps) >= FEW_STEPS else "low",
        sentence=f"{_comparison(hosts, verdict, run)} {explanation}",
        evidence=_figures(hosts, correlations, run),
        advice=_advice(verdict, hosts),
    )


def correlations_of(run: RunFacts) -> Correlations:
    for table in run.steps_by_rank.values():
        sent = group_column(table, "traffic_bytes", "sent")
        step_s = table["step_s"]
        counts = ~np.isnan(sent) & (step_s > 0) & ~is_hang(step_s)
        # The first step of an attempt meets and warms up, and has nothing to do with traffic.
        counts[np.flatnonzero(np.diff(table["attempt"], prepend=-1))] = False
        if counts.sum() > 1:
            sent, step_s = sent[counts], step_s[counts]
            mean = float(sent.mean())
            return Correlations(
                with_rate=correlation(step_s, sent / step_s),
                with_bytes=correlation(step_s, sent),
                scatter=float(sent.std()) / mean if mean and varies(sent) else 0.0,
                steps=len(sent),
            )
    return Correlations(None, None, 0.0, 0)


def predicted_bytes(run: RunFacts) -> float:
    """Returns what each host must send for a step where ranks hold whole copies of the model."""
    last = run.attempts[-1]
    return bytes_per_step(
        parameters=run.record.model_size.parameters,
        ranks=last.ranks,
        ranks_on_host=last.ranks if len(last.host_names) == 1 else 1,
        sharded=False,
    )


def _formula(run: RunFacts) -> str:
    last = run.attempts[-1]
    ranks, gradients = last.ranks, size(run.record.model_size.gradient_bytes)
    each = "each rank" if len(last.host_names) == 1 else "it"
    return f"in a ring of {ranks} ranks {each} sends 2 x {ranks - 1}/{ranks} of {gradients}"


def _comparison(hosts: Sequence[HostTraffic], verdict: str, run: RunFacts) -> str:
    sent = _mean(hosts, "sent")
    predicted = _mean(hosts, "predicted")
    if not predicted:
        return f"Each node sent {size(sent)} a step, though nothing had to travel."
    difference = sent / predicted - 1
    is_ring = run.config.training.sharding == "none"
    words = (
        f"Each node had to send {size(predicted)} a step, packet headers included"
        f"{f' ({_formula(run)})' if is_ring else ''}, and {size(sent)} were counted, "
        f"{percent(abs(difference))} {'more' if difference >= 0 else 'less'}"
    )
    match verdict:
        case "as predicted":
            return words + ": confirmations and small messages account for such differences."
        case "more than predicted":
            again = most_retransmitted(hosts)
            if again > MUCH_RETRANSMITTED:
                return f"{words}; {percent(again)} of the packets were sent again."
            return words + ": something else uses the same interface while steps are done."
    return words + ": gradients travel in fewer bytes, or some of them over another interface."


def _explanation(
    hosts: Sequence[HostTraffic], correlations: Correlations, split: StepSplit | None, link: Link
) -> str:
    sent = _mean(hosts, "sent")
    scatter = percent(correlations.scatter)
    constant = f"The bytes of a step hardly differ from step to step ({scatter})"
    if correlations.with_rate is None:
        return f"{constant}; there is too little to correlate them with the time of a step."
    correlated = _in_words("traffic per second", correlations.with_rate)
    if correlations.scatter > MUCH_SCATTER and correlations.with_bytes:
        return (
            f"The bytes of a step vary by {scatter}; the time of a step and "
            f"{_in_words('its bytes', correlations.with_bytes)}, and {correlated}."
        )
    why = (
        f"{constant}, whatever its time, so a longer step means less traffic per second: the time "
        f"of a step and {correlated}"
    )
    if correlations.with_rate.high > -CLEAR:
        why = f"{constant}; the time of a step and {correlated}"
    if split is None or math.isnan(split.network_s):
        return f"{why}. How much of a step the traffic takes is not known."
    if shares_of(split).network >= BOUND_SHARE:
        if latency_explains(split, link):
            return (
                f"{why}. Here the latency of the messages sets the time and not their bytes, which "
                "come nowhere near filling the link."
            )
        at_most = sent / split.network_s
        return (
            f"{why}. Here the traffic sets the time and not the reverse: the bytes alone take "
            f"{seconds(split.network_s)} on average that nothing hides, {rate(at_most)} at most."
        )
    return f"{why}. It is not the traffic that makes steps long here."


def _in_words(what: str, found: Estimate) -> str:
    return (
        f"{what} correlate with {found.value:.2f} (95 % interval {found.low:.2f} to "
        f"{found.high:.2f})"
    )


def _figures(
    hosts: Sequence[HostTraffic], correlations: Correlations, run: RunFacts
) -> list[Figure]:
    sent, predicted = _mean(hosts, "sent"), _mean(hosts, "predicted")
    formula = "" if run.config.training.sharding == "full" else _formula(run)
    ratio = sent / predicted if predicted else math.nan
    named = {
        "correlation of step time with traffic per second": correlations.with_rate,
        "correlation of step time with bytes per step": correlations.with_bytes,
    }
    return recorded(
        Figure("sent per step", sent, "bytes", note="by each node, in the mean over nodes"),
        Figure("received per step", _mean(hosts, "received"), "bytes"),
        Figure("predicted per step", predicted, "bytes", note=formula),
        Figure("counted over predicted", ratio, ""),
        Figure("scatter of the bytes per step", correlations.scatter, "share"),
        *(
            found.figure(name, "", f"{correlations.steps:,} steps")
            for name, found in named.items()
            if found
        ),
        *(
            Figure(f"{host.host} sent per step", host.bytes_per_step["sent"], "bytes")
            for host in hosts
        ),
    )


def _mean(hosts: Sequence[HostTraffic], way: str) -> float:
    return math.fsum(host.bytes_per_step[way] for host in hosts) / len(hosts)


def _advice(verdict: str, hosts: Sequence[HostTraffic]) -> str:
    if verdict != "more than predicted":
        return ""
    if most_retransmitted(hosts) > MUCH_RETRANSMITTED:
        return "Look for a damaged cable, a full switch or a wrong packet size on the way."
    return "See what else uses this interface: copies of data, other runs, backups."
