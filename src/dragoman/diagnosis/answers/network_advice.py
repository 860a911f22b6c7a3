"""What to do about the network, or about whatever else holds the steps back."""

import math
from collections.abc import Sequence

from dragoman.diagnosis.answers import stragglers, traffic
from dragoman.diagnosis.answers.network_words import cap_in_words
from dragoman.diagnosis.answers.step_time import SAVE_LESS_OFTEN
from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.speed.bottleneck import ALWAYS_THE_SAME, BOUND_SHARE, shares_of
from dragoman.diagnosis.speed.judgement import Judgement
from dragoman.diagnosis.speed.what_if import WhatIf


def advice_on(judgement: Judgement, nodes: Sequence[HostTraffic], if_s: WhatIf) -> str:
    """Of what holds at the end of the run; what is over may come back."""
    advice = _advice(judgement, nodes, if_s)
    if advice and judgement.until_step is not None and judgement.verdict != "compute-bound":
        over = f"It has been over since step {judgement.until_step + 1:,}"
        return f"{over}; this is for when it comes back. {advice}"
    return advice


def _advice(judgement: Judgement, nodes: Sequence[HostTraffic], if_s: WhatIf) -> str:
    match judgement.verdict:
        case "network-bound":
            return " ".join(
                sentence
                for sentence in (
                    _limit(judgement, nodes),
                    _other_traffic(judgement, nodes),
                    f"Of the time for the same tokens, {_savings(nodes, if_s)}.",
                )
                if sentence
            )
        case "latency-bound":
            return (
                "A faster link would change little. Put the hosts closer together, or let "
                "gradients travel less often: of the time for the same tokens, "
                f"{_saved(_larger_updates(if_s), if_s)}."
            )
        case "straggler":
            advice = stragglers.advice_on(judgement.late, judgement.split)
            if judgement.late.share < ALWAYS_THE_SAME:
                return advice
            saved = percent(shares_of(judgement.split).straggling)
            return f"{advice} As fast as the others, {saved} of each step would be saved."
        case "input-bound":
            return stragglers.SEE_TO_THE_DATA.format("")
    shares = shares_of(judgement.split)
    if shares.checkpoint >= BOUND_SHARE / 2:
        return SAVE_LESS_OFTEN
    if max(0.0 if math.isnan(share) else share for share in shares[1:6]) >= BOUND_SHARE / 2:
        return ""
    return (
        "Faster devices, or more of them, would make its steps shorter; the answer about devices "
        "says how well these are used."
    )


def _limit(judgement: Judgement, nodes: Sequence[HostTraffic]) -> str:
    if not cap_in_words(judgement, nodes):
        return ""
    if len(nodes) > 2:
        return (
            "Measure the rate between each two neighboring hosts: a ring is as fast as its slowest "
            "link, and every host shows the same rate."
        )
    return "Find out what limits the rate between the hosts."


def _other_traffic(judgement: Judgement, nodes: Sequence[HostTraffic]) -> str:
    if _compared(nodes, judgement.run_split.step_s) != "more than predicted":
        return ""
    return "More bytes pass than the gradients need: see the answer about the traffic first."


def _savings(nodes: Sequence[HostTraffic], if_s: WhatIf) -> str:
    options = [("a link ten times faster", if_s.faster_link_s)]
    # Where fewer bytes were counted than fp32 needs, nobody knows what halving them would do.
    if _compared(nodes, if_s.now_s) != "less than predicted":
        options.insert(0, ("bf16 on the wire", if_s.half_bytes_s))
    return _saved([*options, *_larger_updates(if_s)], if_s)


def _larger_updates(if_s: WhatIf) -> list[tuple[str, float]]:
    return [
        ("updates twice as large (training.tokens_per_update)", if_s.double_updates_s),
        ("four times as large", if_s.fourfold_updates_s),
    ]


def _saved(options: Sequence[tuple[str, float]], if_s: WhatIf) -> str:
    (first, first_s), *others = options
    words = [f"{first} would save about {percent(if_s.saving(first_s))}"]
    words += [f"{what} {percent(if_s.saving(then_s))}" for what, then_s in others]
    return ", ".join(words)


def _compared(nodes: Sequence[HostTraffic], step_s: float) -> str:
    """Empty: nothing was counted."""
    return traffic.compared(nodes, step_s) if nodes else ""
