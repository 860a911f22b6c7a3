"""How does the time of a step go together with the network traffic between the nodes?"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.findings import Confidence, Figure, Finding, unknown
from dragoman.diagnosis.phrasing import percent, rate, seconds, size
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import (
    HostTraffic,
    gradient_bytes,
    link_between,
)
from dragoman.diagnosis.run.steps import StepSplit, is_hang
from dragoman.diagnosis.speed.bottleneck import BOUND_SHARE, Link, latency_explains, shares_of
from dragoman.diagnosis.speed.statistics import Estimate, correlation, varies
from dragoman.telemetry.read.rows import group_column

KEY = "traffic"
QUESTION = "How does that go together with the network traffic between the nodes?"

MORE = 1.10
"""Counted over predicted: confirmations of what is received, repeated packets and the step's small
messages take some percent."""
LESS = 0.93
ALLOWED_BYTES = 65_536.0
"""Small messages of a step, which the prediction leaves out."""
ALLOWED_RATE = 50_000.0
"""Bytes a second of what else a host tells: signs of life, records on their way home."""
MUCH_AGAIN = 0.01
"""Of TCP's segments; links in order repeat less than a thousandth."""
FEW_STEPS = 20
CLEAR = 0.3
"""A correlation nearer to zero than this explains less than a tenth of the scatter."""


class Together(NamedTuple):
    """Of the first node that has counted. None: one of the two does not vary, or too few steps."""

    with_rate: Estimate | None
    """Correlation of a step's time with its bytes a second."""
    with_bytes: Estimate | None
    scatter: float
    """Of the bytes from step to step, relative."""
    steps: int


def answer(run: RunFacts) -> Finding:
    if not len(run.steps):
        return unknown(KEY, QUESTION, "no step has been recorded")
    if max(attempt.ranks for attempt in run.attempts) == 1:
        sentence = "There was one worker, so that nothing had to travel between nodes."
        return Finding(KEY, QUESTION, "no traffic", "high", sentence, [])
    nodes = run.host_traffic
    if not nodes:
        predicted = predicted_bytes(run)
        return unknown(
            KEY,
            QUESTION,
            "the bytes on the network were not counted",
            [Figure("predicted per step", predicted, "bytes", note=_formula(run))],
        )
    if math.isnan(_mean(nodes, "predicted")):
        sent = Figure("sent per step", _mean(nodes, "sent"), "bytes")
        return unknown(KEY, QUESTION, "how much had to be sent was not recorded", [sent])
    together = together_of(run)
    anatomy = run.step_parts
    split = anatomy.mean(np.flatnonzero(anatomy.usual)) if len(anatomy) else None
    verdict = compared(nodes, float(run.steps["step_s"].mean()))
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=verdict,
        confidence=_confidence(nodes, len(run.steps)),
        sentence=" ".join(
            [
                _counted(nodes, verdict, run),
                _explained(nodes, together, split, link_between(run.record, nodes)),
            ]
        ),
        evidence=_figures(nodes, together, run),
        advice=_advice(verdict, nodes),
    )


def compared(nodes: Sequence[HostTraffic], step_s: float) -> str:
    """All nodes together: what was counted against what the algorithm must send."""
    counted = math.fsum(node.bytes_per_step["sent"] for node in nodes)
    predicted = math.fsum(node.bytes_per_step["predicted"] for node in nodes)
    if not predicted:
        return "no traffic" if counted < ALLOWED_BYTES * len(nodes) else "more than predicted"
    allowed = (ALLOWED_BYTES + ALLOWED_RATE * step_s) * len(nodes)
    if counted > MORE * predicted + allowed:
        return "more than predicted"
    return "less than predicted" if counted < LESS * predicted else "as predicted"


def together_of(run: RunFacts) -> Together:
    for table in run.steps_by_rank.values():
        sent = group_column(table, "traffic_bytes", "sent")
        step_s = table["step_s"]
        told = ~np.isnan(sent) & (step_s > 0) & ~is_hang(step_s)
        # The first step of an attempt meets and warms up, and has nothing to do with traffic.
        told[np.flatnonzero(np.diff(table["attempt"], prepend=-1))] = False
        if told.sum() > 1:
            sent, step_s = sent[told], step_s[told]
            mean = float(sent.mean())
            return Together(
                with_rate=correlation(step_s, sent / step_s),
                with_bytes=correlation(step_s, sent),
                scatter=float(sent.std()) / mean if mean and varies(sent) else 0.0,
                steps=len(sent),
            )
    return Together(None, None, 0.0, 0)


def predicted_bytes(run: RunFacts) -> float:
    """What a ring sends from each node for each step, without headers."""
    last = run.attempts[-1]
    senders = last.ranks if len(last.host_names) == 1 else 1
    return senders * 2 * (last.ranks - 1) / last.ranks * gradient_bytes(run.record)


def _formula(run: RunFacts) -> str:
    last = run.attempts[-1]
    ranks, gradients = last.ranks, size(gradient_bytes(run.record))
    each = "each rank" if len(last.host_names) == 1 else "it"
    return f"in a ring of {ranks} ranks {each} sends 2 x {ranks - 1}/{ranks} of {gradients}"


def _counted(nodes: Sequence[HostTraffic], verdict: str, run: RunFacts) -> str:
    sent = _mean(nodes, "sent")
    predicted = _mean(nodes, "predicted")
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
            again = retransmitted(nodes)
            if again > MUCH_AGAIN:
                return f"{words}; {percent(again)} of the packets had to be sent again."
            return words + ": something else uses the same interface while steps are done."
    return words + ": gradients travel in fewer bytes, or some of them over another interface."


def _explained(
    nodes: Sequence[HostTraffic], together: Together, split: StepSplit | None, link: Link
) -> str:
    sent = _mean(nodes, "sent")
    constant = f"The bytes of a step hardly differ from step to step ({percent(together.scatter)})"
    if together.with_rate is None:
        return f"{constant}; there is too little to correlate them with the time of a step."
    correlated = _in_words("traffic per second", together.with_rate)
    if together.scatter > 0.05 and together.with_bytes:
        return (
            f"The bytes of a step vary by {percent(together.scatter)}; the time of a step and "
            f"{_in_words('its bytes', together.with_bytes)}, and {correlated}."
        )
    why = (
        f"{constant}, whatever its time, so a longer step means less traffic per second: the time "
        f"of a step and {correlated}"
    )
    if together.with_rate.high > -CLEAR:
        why = f"{constant}; the time of a step and {correlated}"
    if split is None or math.isnan(split.network_s):
        return f"{why}. How much of a step the traffic takes is not known."
    if shares_of(split).network >= BOUND_SHARE:
        if latency_explains(split, link):
            return (
                f"{why}. Here messages on their way set the time and not their bytes, which fill "
                "nothing like the link."
            )
        at_most = sent / split.network_s
        return (
            f"{why}. Here the traffic sets the time and not the reverse: the bytes alone take "
            f"{seconds(split.network_s)} in the mean that nothing hides, {rate(at_most)} at most."
        )
    return f"{why}. It is not the traffic that makes steps long here."


def _in_words(what: str, found: Estimate) -> str:
    return (
        f"{what} correlate with {found.value:.2f} (95 % interval {found.low:.2f} to "
        f"{found.high:.2f})"
    )


def _figures(nodes: Sequence[HostTraffic], together: Together, run: RunFacts) -> list[Figure]:
    sent, predicted = _mean(nodes, "sent"), _mean(nodes, "predicted")
    found = [Figure("sent per step", sent, "bytes", note="by each node, in the mean over nodes")]
    received = _mean(nodes, "received")
    if not math.isnan(received):
        found.append(Figure("received per step", received, "bytes"))
    note = "" if run.config.training.sharding == "full" else _formula(run)
    found.append(Figure("predicted per step", predicted, "bytes", note=note))
    if predicted:
        found.append(Figure("counted over predicted", sent / predicted, ""))
    found.append(Figure("scatter of the bytes per step", together.scatter, "share"))
    for name, estimate in (
        ("correlation of step time with traffic per second", together.with_rate),
        ("correlation of step time with bytes per step", together.with_bytes),
    ):
        if estimate:
            note = f"{together.steps:,} steps"
            found.append(Figure(name, estimate.value, "", estimate.low, estimate.high, note))
    found += [
        Figure(f"{node.host} sent per step", node.bytes_per_step["sent"], "bytes") for node in nodes
    ]
    return found


def retransmitted(nodes: Sequence[HostTraffic]) -> float:
    shares = (node.retransmitted for node in nodes)
    return max((share for share in shares if not math.isnan(share)), default=0.0)


def _mean(nodes: Sequence[HostTraffic], way: str) -> float:
    return math.fsum(node.bytes_per_step[way] for node in nodes) / len(nodes)


def _confidence(nodes: Sequence[HostTraffic], steps: int) -> Confidence:
    return "high" if steps >= FEW_STEPS and nodes else "low"


def _advice(verdict: str, nodes: Sequence[HostTraffic]) -> str:
    if verdict != "more than predicted":
        return ""
    if retransmitted(nodes) > MUCH_AGAIN:
        return "Look for a damaged cable, a full switch or a wrong packet size on the way."
    return "See what else uses this interface: copies of data, other runs, backups."
