"""How does the time of a step go together with the network traffic between the nodes?

What was sent is compared with what the algorithm must send, for each number of hosts and ranks that
the run went on with: a ring of four sends more than one of two, and no attempt had a mean of both.
Whether the traffic sets the time of a step is what the bottleneck says, here as in the answer about
the network; why steps differ is another question, and has its own sentence.
"""

import math
from collections.abc import Sequence

import numpy as np

from dragoman.diagnosis.findings import Advice, Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import count, percent, seconds, sentence_of, size
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS, shares_of
from dragoman.diagnosis.speed.causes import WAITED_FOR, Causes, causes_of
from dragoman.diagnosis.speed.foreseen import forecast_figures, foreseen_of
from dragoman.diagnosis.speed.layouts import (
    LayoutPace,
    comparison_of,
    layout_name,
    layouts_of,
    longest_layout,
    rows_of,
    why_this_layout,
)
from dragoman.diagnosis.speed.link_use import (
    MUCH_RETRANSMITTED,
    counted_against_predicted,
    most_retransmitted,
    passes_elsewhere,
)
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.phases import in_a_word, over_in_words, whom_in_words
from dragoman.diagnosis.speed.step_variation import (
    PARTS,
    ByteVariation,
    StepVariation,
    byte_variation_of,
    variation_of,
)
from dragoman.distributed.ring_bytes import mean_bytes_of_mode
from dragoman.distributed.wire_bytes import VALUE_BYTES, is_gathered

MUCH_SCATTER = 0.05
"""Relative: bytes that vary less cannot explain anything, steps that vary less need not be."""
NO_BYTES = ByteVariation(0, math.nan, None)
WORTH_BLAMING = 0.3
"""Of the variance of the steps' time: less is nobody's cause."""


def answer(run: RunFacts) -> Finding:
    if not len(run.steps):
        return unknown("no step has been recorded")
    if max(attempt.ranks for attempt in run.attempts) == 1:
        sentence = "There was one worker, so nothing had to travel between nodes."
        return Finding("no traffic", "high", sentence, [], plain=sentence)
    layouts = layouts_of(run)
    together = [layout for layout in layouts if layout.ranks > 1]
    if not together:
        return unknown(why_no_common_step(run.steps))
    layout = longest_layout([each for each in together if each.traffic] or together)
    verdict = counted_against_predicted(layout.traffic, layout.split.step_s)
    if verdict is None:
        predicted = Figure(
            "predicted per step", predicted_bytes(run, layout), "bytes", note=_formula(run, layout)
        )
        return unknown("the bytes on the network were not counted", [predicted])
    if math.isnan(layout.predicted_bytes):
        sent = Figure("sent per step", layout.sent_bytes, "bytes")
        return unknown("how much had to be sent was not recorded", [sent])
    if layout.hosts == 1 and verdict == "less than predicted":
        verdict = "no traffic"
    rows = rows_of(run, layout)
    steps = variation_of(run.step_parts, rows)
    sent_bytes = byte_variation_of(run, run.step_parts.step[rows])
    speed = speed_of(run)
    causes = causes_of(run, speed, speed.bottleneck) if speed and speed.bottleneck else None
    sentences = [
        _comparison(run, layout, layouts, verdict),
        _others_in_words(layout, layouts),
        comparison_of(layouts, run.config.cost),
        _what_sets_the_time(causes, layouts),
        sentence_of(over_in_words(causes.found)) if causes else "",
        _now_and_then(causes),
        _why_steps_differ(steps, sent_bytes if verdict != "no traffic" else NO_BYTES),
    ]
    return Finding(
        verdict=verdict,
        confidence="high" if len(run.steps) >= FEW_STEPS else "low",
        sentence=" ".join(sentence for sentence in sentences if sentence),
        evidence=_figures(run, layout, layouts, steps, sent_bytes),
        advice=_advice(run, verdict, layout),
        plain=_plain(layout, verdict, causes),
    )


def predicted_bytes(run: RunFacts, layout: LayoutPace) -> float:
    """Returns what each host must send for a step where ranks hold whole copies of the model."""
    return mean_bytes_of_mode(
        run.config.sync,
        parameters=run.record.model_size.parameters,
        ranks=layout.ranks,
        ranks_on_host=layout.ranks if layout.hosts == 1 else 1,
        hosts=layout.hosts,
    )


def _formula(run: RunFacts, layout: LayoutPace) -> str:
    """Empty where ranks hold parts of the model, and more than gradients travels."""
    if run.config.training.sharding == "full":
        return ""
    sync, ranks, gradient_bytes = (
        run.config.sync,
        layout.ranks,
        run.record.model_size.gradient_bytes,
    )
    each = "each rank" if layout.hosts == 1 else "it"
    if sync.mode == "bf16":
        return f"{each} sends 2 x {ranks - 1}/{ranks} of {size(gradient_bytes / 2)}, as bf16"
    if sync.is_local and sync.group == "host":
        ranks = layout.hosts if layout.hosts > 1 else ranks
    if sync.is_local and sync.wire and not (sync.group == "host" and layout.hosts == 1):
        wire_bytes = gradient_bytes * VALUE_BYTES[sync.wire] / VALUE_BYTES["fp32"]
        share = f"2 x {ranks - 1}/{ranks} of "
        if is_gathered(sync.wire, run.record.model_size.parameters, 0, ranks):
            share = f"{ranks - 1} x " if ranks > 2 else ""
        often = count(sync.window_steps, "step")
        return f"{each} sends {share}{size(wire_bytes)} as {sync.wire}, once in {often}"
    formula = f"in a ring of {ranks} ranks {each} sends 2 x {ranks - 1}/{ranks} of "
    return formula + size(gradient_bytes)


def _plain(layout: LayoutPace, verdict: str, causes: Causes | None) -> str:
    if layout.hosts == 1:
        return "All workers are in one machine, so nothing has to travel between machines."
    sends = f"Each machine sends {size(layout.sent_bytes)} in every step"
    if passes_elsewhere(layout.traffic):
        sends = "The gradients take a way on which bytes are not counted"
    match verdict:
        case "more than predicted":
            sends += ", more than this training needs"
        case "less than predicted" if not passes_elsewhere(layout.traffic):
            sends += ", less than expected"
    if causes is None:
        return f"{sends}."
    if causes.bad is not None and causes.bad_for == WAITED_FOR["network-bound"]:
        often = percent(causes.bad.step_share)
        return f"{sends}, and in {often} of the steps that takes much longer than in the others."
    found = causes.found
    sets = f"sets the pace{in_a_word(found)}"
    if over_in_words(found):
        sets = f"set the pace{in_a_word(found)}, which is over"
    match found.verdict:
        case "network-bound":
            return f"{sends}, and that {sets}."
        case "latency-bound":
            return f"{sends}; not that but the long way of each message {sets}."
        case "straggler":
            return f"{sends}; not that but the slowest worker {sets}."
        case "input-bound":
            return f"{sends}; not that but data that comes too slowly {sets}."
    return f"{sends}, which hardly slows the training down."


def _comparison(
    run: RunFacts, layout: LayoutPace, layouts: Sequence[LayoutPace], verdict: str
) -> str:
    sent, predicted = layout.sent_bytes, layout.predicted_bytes
    who, had = ("This machine", "it") if layout.hosts == 1 else ("Each node", "each node")
    if len(layouts) > 1:
        among = [each for each in layouts if each.ranks > 1]
        who = f"With {layout_name(layout, layouts)}"
        who += f", {why_this_layout(layout, among)}, {had}" if len(among) > 1 else f" {had}"
    if verdict == "no traffic":
        return (
            f"All {count(layout.ranks, 'rank')} are in one machine and pass their gradients "
            "through its memory or directly between its devices, so that next to nothing passes "
            "a network interface."
        )
    if not predicted:
        return f"{who} sent {size(sent)} a step, though nothing had to travel."
    difference = sent / predicted - 1
    formula = f" ({formula})" if (formula := _formula(run, layout)) else ""
    words = (
        f"{who} had to send {size(predicted)} a step, packet headers included{formula}, and "
        f"{size(sent)} were counted, {percent(abs(difference))} "
        f"{'more' if difference >= 0 else 'less'}"
    )
    if layout.hosts == 1:
        words += ", all of it within the machine"
    match verdict:
        case "as predicted":
            return words + ": confirmations and small messages account for such differences."
        case "more than predicted":
            again = most_retransmitted(layout.traffic)
            if again > MUCH_RETRANSMITTED:
                return f"{words}; {percent(again)} of the packets were sent again."
            return words + ": something else uses the same interface while steps are done."
    if passes_elsewhere(layout.traffic):
        return words + ": they pass where the kernel does not count, as with InfiniBand."
    return words + ": gradients travel in fewer bytes, or some of them over another interface."


def _others_in_words(layout: LayoutPace, layouts: Sequence[LayoutPace]) -> str:
    """Names what was sent with other numbers of hosts and ranks."""
    others = [
        f"{size(each.sent_bytes)} with {layout_name(each, layouts)}"
        for each in layouts
        if each is not layout and each.ranks > 1 and each.traffic
    ]
    alone = ["nothing with one worker"] if any(each.ranks == 1 for each in layouts) else []
    named = ", ".join([*others, *alone])
    return f"In other attempts it was {named}." if named else ""


def _what_sets_the_time(causes: Causes | None, layouts: Sequence[LayoutPace]) -> str:
    """Says whether the traffic does, as the bottleneck has it."""
    if causes is None:
        return "How much of a step the traffic takes is not known."
    found = causes.found
    split, shares = found.split, shares_of(found.split)
    network_s = f"{seconds(split.network_s)} of a mean step of {seconds(split.step_s)}"
    if len(layouts) > 1:  # no attempt had the mean of all
        network_s = f"{percent(shares.network)} of the time of the steps"
    when = in_a_word(found)
    network = f"the network takes {percent(shares.network)} of a step that no computing hides"
    match found.verdict:
        case "network-bound":
            return (
                f"The traffic sets the time of a step{when}: sending the gradients takes "
                f"{network_s} that no computing hides."
            )
        case "latency-bound":
            return (
                f"The latency of the messages sets the time{when} and not their bytes, which come "
                f"nowhere near filling the link: they take {network_s}."
            )
        case "straggler":
            is_one = found.late.is_always_the_same and not causes.is_shared_unevenly
            late = whom_in_words(found) if is_one else "the slowest rank"
            return (
                f"The traffic does not set the time of a step:{when} the others wait for {late} "
                f"({percent(shares.straggling)} of a step), while {network}."
            )
        case "input-bound":
            return (
                f"The traffic does not set the time of a step:{when} it waits for its data "
                f"({percent(shares.input)}), while {network}."
            )
    if all(layout.hosts == 1 for layout in layouts):
        return f"Computing takes most of a step; exchanging gradients {percent(shares.network)}."
    return f"The traffic does not set the time of a step: {network}."


def _now_and_then(causes: Causes | None) -> str:
    """Says in how many steps they wait much more than in the others, if so."""
    if causes is None or causes.bad is None:
        return ""
    bad = causes.bad
    return (
        f"In {percent(bad.step_share)} of the steps they wait {seconds(bad.bad_s)} for "
        f"{causes.bad_for}, in the others {seconds(bad.usual_s)}."
    )


def _why_steps_differ(steps: StepVariation, sent: ByteVariation) -> str:
    if steps.scatter < MUCH_SCATTER:
        if not steps.shares:
            return ""
        return f"All steps take about the same time (they scatter by {percent(steps.scatter)})."
    share = steps.shares.get(steps.cause, 0.0)
    goes_with = "no single part of a step explains that"
    if share >= WORTH_BLAMING:
        goes_with = f"{percent(min(1.0, share))} of that goes with {PARTS[steps.cause]}"
    words = f"The time of a step scatters by {percent(steps.scatter)}, and {goes_with}"
    if sent.scatter <= MUCH_SCATTER:
        return f"{words}; the bytes are the same in each step, so they are no reason for it."
    if sent.with_bytes is None or math.isnan(sent.scatter):
        return f"{words}."
    return (
        f"{words}; the bytes of a step vary by {percent(sent.scatter)}, and their correlation with "
        f"its time is {sent.with_bytes.value:.2f}."
    )


def _figures(
    run: RunFacts,
    layout: LayoutPace,
    layouts: Sequence[LayoutPace],
    steps: StepVariation,
    sent: ByteVariation,
) -> list[Figure]:
    predicted = layout.predicted_bytes
    named = {
        "correlation of step time with exposed network": steps.with_network,
        "correlation of step time with bytes per step": sent.with_bytes,
    }
    return recorded(
        Figure("sent per step", layout.sent_bytes, "bytes", note="by a host, mean over hosts"),
        Figure("received per step", layout.received_bytes, "bytes"),
        Figure("predicted per step", predicted, "bytes", note=_formula(run, layout)),
        *forecast_figures(foreseen_of(run), {"bytes_per_step": "forecast per step"}),
        Figure("counted over predicted", layout.sent_bytes / predicted if predicted else None, ""),
        *(
            Figure(
                f"sent per step with {layout_name(each, layouts)}",
                each.sent_bytes,
                "bytes",
                note=f"predicted: {size(each.predicted_bytes)}",
            )
            for each in layouts
            if len(layouts) > 1 and each.traffic and not math.isnan(each.predicted_bytes)
        ),
        Figure("scatter of the bytes per step", sent.scatter, "share"),
        Figure("scatter of the step time", steps.scatter, "share"),
        *(
            Figure(f"variance of the step time, {PARTS[part]}", share, "share")
            for part, share in steps.shares.items()
            if steps.scatter >= MUCH_SCATTER
        ),
        *(
            found.figure(name, "", f"{steps.steps:,} steps")
            for name, found in named.items()
            if found
        ),
        *(
            Figure(f"{host.host} sent per step", host.bytes_per_step["sent"], "bytes")
            for host in layout.traffic
        ),
    )


def _advice(run: RunFacts, verdict: str, layout: LayoutPace) -> list[Advice]:
    if verdict != "more than predicted":
        return []
    again = max(layout.traffic, key=lambda host: np.nan_to_num(host.retransmitted))
    if again.retransmitted > MUCH_RETRANSMITTED:
        return [
            Advice(
                f"{again.host} sends many packets twice: look for a damaged cable, a full switch "
                "or a wrong packet size on the way. Errors and drops show here.",
                advice.on_host(run, again.host, f"ip -s link show dev {again.interface}"),
            )
        ]
    most = max(layout.traffic, key=lambda host: host.bytes_per_step["sent"])
    return [
        Advice(
            "See what else uses this interface: copies of data, other runs, backups. This lists "
            "the connections of each program.",
            advice.on_host(run, most.host, "ss -tnp"),
        )
    ]
