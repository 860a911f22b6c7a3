"""What to do about the network, or about whatever else holds the steps back."""

import math
from collections.abc import Sequence

from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import BOUND_SHARE, shares_of
from dragoman.diagnosis.speed.link_use import capped_host, counted_against_predicted
from dragoman.diagnosis.speed.phases import RunBottleneck
from dragoman.diagnosis.speed.what_if import ProjectedSteps

WORTH_MENTIONING = BOUND_SHARE / 2


def advice_on(found: RunBottleneck, hosts: Sequence[HostTraffic], projected: ProjectedSteps) -> str:
    """Returns advice on what holds at the end of the run; what is over may come back."""
    what_to_do = _advice(found, hosts, projected)
    if what_to_do and found.until_step is not None and found.verdict != "compute-bound":
        over = f"It has been over since step {found.until_step + 1:,}"
        return f"{over}; this is for when it comes back. {what_to_do}"
    return what_to_do


def _advice(found: RunBottleneck, hosts: Sequence[HostTraffic], projected: ProjectedSteps) -> str:
    shares = shares_of(found.split)
    match found.verdict:
        case "network-bound":
            return _on_the_network(found, hosts, projected)
        case "latency-bound":
            return (
                "A faster link would change little. Put the hosts closer together, or let "
                "gradients travel less often: of the time for the same tokens, "
                f"{_savings(_larger_updates(projected), projected)}."
            )
        case "straggler":
            what_to_do = advice.on_lateness(found.late, found.split)
            if not found.late.is_always_the_same:
                return what_to_do
            saved = percent(shares.straggling)
            return f"{what_to_do} As fast as the others, {saved} of each step would be saved."
        case "input-bound":
            return advice.on_slow_data()
    if shares.checkpoint >= WORTH_MENTIONING:
        return advice.SAVE_LESS_OFTEN
    waits = (shares.network, shares.straggling, shares.data, shares.rest)
    if any(not math.isnan(share) and share >= WORTH_MENTIONING for share in waits):
        return ""
    return (
        "Faster devices, or more of them, would make its steps shorter; the answer about devices "
        "says how well these are used."
    )


def _on_the_network(
    found: RunBottleneck, hosts: Sequence[HostTraffic], projected: ProjectedSteps
) -> str:
    sentences = []
    if capped_host(found, hosts):
        limit = "Find out what limits the rate between the hosts."
        if len(hosts) > 2:
            limit = (
                "Measure the rate between each two neighboring hosts: a ring is as fast as its "
                "slowest link, and every host shows the same rate."
            )
        sentences.append(limit)
    if counted_against_predicted(hosts, found.run_split.step_s) == "more than predicted":
        sentences.append(
            "More bytes pass than the gradients need: see the answer about the traffic first."
        )
    options = [("a link ten times faster", projected.faster_link_s), *_larger_updates(projected)]
    # Where fewer bytes were counted than fp32 needs, nobody knows what halving them would do.
    if counted_against_predicted(hosts, projected.now_s) != "less than predicted":
        options.insert(0, ("bf16 on the wire", projected.half_bytes_s))
    sentences.append(f"Of the time for the same tokens, {_savings(options, projected)}.")
    return " ".join(sentences)


def _larger_updates(projected: ProjectedSteps) -> list[tuple[str, float]]:
    return [
        ("updates twice as large (training.tokens_per_update)", projected.double_updates_s),
        ("four times as large", projected.fourfold_updates_s),
    ]


def _savings(options: Sequence[tuple[str, float]], projected: ProjectedSteps) -> str:
    (first, first_s), *others = options
    words = [f"{first} would save about {percent(projected.saving(first_s))}"]
    words += [f"{what} {percent(projected.saving(then_s))}" for what, then_s in others]
    return ", ".join(words)
