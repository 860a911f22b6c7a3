"""What was the network traffic, and was the network the bottleneck?"""

import math
from collections.abc import Sequence

import numpy as np

from dragoman.diagnosis.answers.network_advice import advice_on
from dragoman.diagnosis.answers.network_words import answer_in_words
from dragoman.diagnosis.answers.stragglers import SEE_TO_THE_DATA, names_of_ranks
from dragoman.diagnosis.findings import Confidence, Figure, Finding, unknown
from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import HostTraffic, link_between
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed.bottleneck import (
    BOUND_SHARE,
    CLEAR_SHARE,
    CLEARLY_FREE_SHARE,
    Late,
    Link,
    Shares,
    hindrances,
    shares_of,
)
from dragoman.diagnosis.speed.judgement import Judgement, judge
from dragoman.diagnosis.speed.what_if import WhatIf, what_if

KEY = "network"
QUESTION = "What was the network traffic? Was the network the bottleneck?"

FEW_STEPS = 20
"""Whatever fewer steps say may be chance, or still the start."""
CLEARLY_LARGER = 0.10
"""Of the step: so much more than the second, the largest hindrance is the verdict without doubt."""


def answer(run: RunFacts) -> Finding:
    anatomy = run.step_parts
    if not len(anatomy):
        return unknown(KEY, QUESTION, why_no_common_step(run.steps))
    nodes = run.host_traffic
    link = link_between(run.record, nodes)
    names = names_of_ranks(run.attempts)
    rows = np.flatnonzero(anatomy.usual)
    ranks = max(attempt.ranks for attempt in run.attempts)
    split = anatomy.mean(rows)
    evidence = [*_figures(split, ranks), *_traffic_figures(nodes, link)]
    if ranks > 1 and math.isnan(split.network_s):
        return _without_communication(run, split, evidence)
    judgement = judge(anatomy, rows, link, names)
    if_s = what_if(judgement.split, link)
    if judgement.since_step is not None or judgement.until_step is not None:
        evidence = [*_since(judgement), *evidence]
    if ranks > 1 and judgement.split.network_s > 0:
        evidence += _what_if_figures(if_s)
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=judgement.verdict,
        confidence=confidence_of(
            shares_of(judgement.split), judgement.late, len(rows), bool(anatomy.missing_ranks)
        ),
        sentence=answer_in_words(judgement, nodes, ranks, anatomy.missing_ranks),
        evidence=evidence,
        advice=advice_on(judgement, nodes, if_s),
    )


def confidence_of(shares: Shares, late: Late, steps: int, lacks_ranks: bool) -> Confidence:
    if steps < FEW_STEPS:
        return "low"
    largest, second, *_ = hindrances(shares, late).values()
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
    if shares.data >= BOUND_SHARE:
        sentence = (
            f"Each step waits for its data during {percent(shares.data)} of its time. How much the "
            f"network takes is not known, because {because}."
        )
        advice = SEE_TO_THE_DATA.format("")
        return Finding(KEY, QUESTION, "input-bound", "medium", sentence, evidence, advice)
    return unknown(KEY, QUESTION, because, evidence)


def _figures(split: StepSplit, ranks: int) -> list[Figure]:
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
    for name, seconds, share in named:
        if not math.isnan(seconds):
            found.append(Figure(name, seconds, "s"))
        if not math.isnan(share):
            found.append(Figure(f"{name} share", share, "share"))
    return [*found, Figure("ranks", ranks, "")]


def _since(judgement: Judgement) -> list[Figure]:
    shares = shares_of(judgement.split)
    found = [
        Figure("mean step while it holds", judgement.split.step_s, "s"),
        Figure("exposed network share while it holds", shares.network, "share"),
    ]
    if judgement.until_step is not None:
        found.insert(0, Figure("until step", judgement.until_step, "steps"))
    if judgement.since_step is not None:
        found.insert(0, Figure("since step", judgement.since_step, "steps"))
    return found


def _traffic_figures(nodes: Sequence[HostTraffic], link: Link) -> list[Figure]:
    found = []
    for node in nodes:
        for way, rate in node.rates.items():
            found.append(Figure(f"{node.host} {way}", rate, "bytes/s"))
        for way, rate in node.peak_rates.items():
            if not math.isnan(rate):
                note = f"the most in one reading of {node.interface}"
                found.append(Figure(f"{node.host} {way} at most", rate, "bytes/s", note=note))
        if not math.isnan(node.port_rate):
            note = f"what {node.interface} says of itself; what is on the way may be slower"
            found.append(Figure(f"{node.host}, its port", node.port_rate, "bytes/s", note=note))
        if not math.isnan(node.carried) and node.carried > 0:
            share = max(node.rates.values()) / node.carried
            found.append(Figure(f"{node.host}, share of the highest rate seen", share, "share"))
            if not math.isnan(node.port_rate):
                share = max(node.rates.values()) / node.port_rate
                found.append(Figure(f"{node.host}, share of its port", share, "share"))
        if not math.isnan(node.retransmitted):
            found.append(
                Figure(f"{node.host}, TCP segments sent again", node.retransmitted, "share")
            )
    return found


def _what_if_figures(if_s: WhatIf) -> list[Figure]:
    same = "for the same number of tokens"
    found = [
        Figure("step with a link ten times faster", if_s.faster_link_s, "s"),
        Figure("step with bf16 on the wire", if_s.half_bytes_s, "s"),
        Figure("step with updates twice as large", if_s.double_updates_s, "s", note=same),
        Figure("step with updates four times as large", if_s.fourfold_updates_s, "s", note=same),
    ]
    if not math.isnan(if_s.hidden_s):
        note = "beside backward, from the bytes and the highest rate"
        found.append(Figure("hidden network", if_s.hidden_s, "s", note=note))
    return found
