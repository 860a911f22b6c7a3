"""What was the network traffic, and was the network the bottleneck?"""

import math
from collections.abc import Mapping, Sequence

from dragoman.diagnosis.answers import network_links as links
from dragoman.diagnosis.answers.network_advice import advice_on
from dragoman.diagnosis.findings import Confidence, Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import (
    count,
    listed,
    percent,
    plain_name,
    seconds,
    sentence_of,
    size,
)
from dragoman.diagnosis.run.facts import RunFacts
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
from dragoman.diagnosis.speed.causes import WAITED_FOR, Causes, causes_of
from dragoman.diagnosis.speed.foreign_load import ProcessorLoad, share_in_words
from dragoman.diagnosis.speed.foreseen import (
    SlowerLink,
    forecast_figures,
    foreseen_of,
    slower_in_words,
    slower_link,
)
from dragoman.diagnosis.speed.lateness import because_of_data, whose_waiting
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.phases import (
    RunBottleneck,
    in_a_word,
    over_in_words,
    when_it_holds,
    whom_in_words,
)
from dragoman.diagnosis.speed.sync_modes import SyncModes, modes_of
from dragoman.diagnosis.speed.what_if import ProjectedSteps
from dragoman.forecast.sync_modes import OPT_IN, Forecast

CLEARLY_LARGER = 0.10
"""Of the step: so much more than the second, the largest candidate is the verdict without doubt."""
WORTH_NAMING = 0.005
"""Of the step."""


def answer(run: RunFacts) -> Finding:
    speed = speed_of(run)
    if speed is None:
        return unknown(why_no_common_step(run.steps))
    evidence = [*_step_figures(speed.split, speed.ranks), *links.traffic_figures(speed.hosts)]
    if speed.bottleneck is None:
        return _without_communication(run, speed.shares, evidence)
    facts = causes_of(run, speed, speed.bottleneck)
    found = facts.found
    if found.since_step is not None or found.until_step is not None:
        evidence = [*_phase_figures(found), *evidence]
    evidence += links.intermittent_figures(facts.bad, facts.bad_for)
    if facts.is_slow_network:
        evidence += links.cap_figures(facts.cap, facts.at_most)
    if speed.ranks > 1 and found.split.network_s > 0:
        evidence += _projected_figures(facts.projected)
    foreseen = foreseen_of(run)
    evidence += forecast_figures(foreseen, {"exposed_s": "forecast exposed network"})
    slower = slower_link(facts.cap, foreseen.forecast) if foreseen else None
    if slower:
        evidence += _slower_figures(slower)
    modes = modes_of(run, facts)
    if modes is not None:
        evidence = [*_mode_figures(modes), *evidence]
    return Finding(
        verdict=found.verdict,
        confidence=confidence_of(found, len(speed.rows), facts.missing_ranks > 0),
        sentence=_sentence(facts, slower),
        evidence=evidence,
        advice=advice_on(run, facts, modes),
        plain=plain_name(_plain(facts)),
    )


def confidence_of(found: RunBottleneck, steps: int, lacks_ranks: bool) -> Confidence:
    split, shares = found.split, shares_of(found.split)
    if steps < FEW_STEPS:
        return "low"
    if found.verdict == "straggler" and split.small_message_s >= split.straggling_s:
        return "low"  # so wrong may the moments be at which ranks were ready
    largest, second, *_ = candidates(shares, found.late).values()
    if second >= BOUND_SHARE and largest - second < CLEARLY_LARGER:
        return "medium"  # two hold it back about alike
    is_clear = largest >= CLEAR_SHARE or largest <= CLEARLY_FREE_SHARE
    if shares.checkpoint + shares.rest >= BOUND_SHARE > largest:
        is_clear = False  # much of the step is neither computing nor any of the other verdicts
    if found.verdict == "straggler" and split.small_message_s >= split.straggling_s / 2:
        is_clear = False
    return "high" if is_clear and not lacks_ranks else "medium"


def _without_communication(run: RunFacts, shares: Shares, evidence: Sequence[Figure]) -> Finding:
    because = "this run has not recorded how long its ranks waited for the network"
    if run.config.training.sharding == "full":
        because = (
            "with sharded states the ranks communicate all through forward and backward, so that "
            "no clock can tell the network's part from computing"
        )
    if shares.data < BOUND_SHARE:
        return unknown(because, evidence)
    sentence = (
        f"Each step waits for its data during {percent(shares.data)} of its time. How much the "
        f"network takes is not known, because {because}."
    )
    plain = f"The machines waited for their data {_share(shares.data)} of the time."
    what_to_do = advice.on_slow_data(run)
    return Finding("input-bound", "medium", sentence, evidence, what_to_do, plain)


def _plain(facts: Causes) -> str:
    over = over_in_words(facts.found)
    plain = _plain_verdict(facts)
    return f"{plain.removesuffix('.')}; {over}." if over else plain


def _plain_verdict(facts: Causes) -> str:
    found, shares = facts.found, shares_of(facts.found.split)
    when = in_a_word(found)
    if facts.speed.ranks == 1:
        return "No: one worker did all the work, and sent nothing to other machines."
    if facts.bad is not None:
        return _plain_now_and_then(facts)
    match found.verdict:
        case "network-bound":
            waited = _share(shares.network)
            because = _because_of_cap(facts)
            return f"Yes: the machines waited for the network {waited} of the time{when}{because}."
        case "latency-bound":
            return (
                f"Yes: the machines spent {_share(shares.network)} of the time{when} waiting for "
                "short messages, which take long on their way."
            )
        case "straggler":
            return f"No: {_who_is_late(facts)}"
        case "input-bound":
            waited = _share(shares.input)
            return f"No: the machines waited for their data {waited} of the time{when}."
    if shares.checkpoint >= BOUND_SHARE:
        waited = _share(shares.checkpoint)
        return f"No: the machines waited for checkpoints to be copied {waited} of the time{when}."
    if shares.rest >= BOUND_SHARE:
        return f"No: {_share(shares.rest)} of the time{when} went to something that is not timed."
    if facts.crowded:
        others = f"other programs slow {listed(list(facts.crowded))}"
        return f"No: in the steps, the machines spent most of the time computing, but {others}."
    return "No: in the steps, the machines spent most of the time computing, as they should."


def _plain_now_and_then(facts: Causes) -> str:
    late, often = facts.found.late, _share(facts.bad.step_share if facts.bad else 0.0)
    whom = facts.bad_for
    steps = f"of the steps{in_a_word(facts.found)}"
    if facts.found.verdict == "straggler" and late.is_always_the_same:
        whom = whom_in_words(facts.found)
    match facts.found.verdict:
        case "network-bound" | "latency-bound":
            because = _because_of_cap(facts)
            return f"Yes, now and then: {often} {steps} waited long for {whom}{because}."
        case "compute-bound":
            return f"Not in most steps, but {often} of them waited long for {whom}."
    return f"No: now and then, in {often} {steps}, the machines waited long for {whom}."


def _because_of_cap(facts: Causes) -> str:
    if facts.cap is None or not (facts.cap.hosts or facts.cap.hop):
        return ""
    is_slow = "was slow" if facts.found.is_over else "is slow"
    if facts.cap_turns:
        each = [f"that {links.turn_in_words(turn)}" for turn in facts.cap_turns]
        return f", because one connection {is_slow}: {listed(each)}"
    likely = "" if facts.cap.is_sure else "most likely "
    return f", {likely}because the connection {links.place_of(facts.cap)} {is_slow}"


def _who_is_late(facts: Causes) -> str:
    found, late = facts.found, facts.found.late
    waited = f"{_share(shares_of(found.split).straggling)} of the time{in_a_word(found)}"
    if facts.is_shared_unevenly:
        return (
            f"the machines waited for each other {waited}, because the work does not divide "
            "evenly among them."
        )
    if found.turns:
        return f"the machines waited {waited} for one that is slow: {whom_in_words(found)}."
    if late.is_always_the_same:
        slow = "slower than the others"
        return f"the machines waited {waited} for {late.who}, which {_is(found)} {slow}."
    if late.early:
        return f"only {late.early} waited, {waited}, being faster than the others."
    return f"the machines waited for each other {waited}."


def _is(found: RunBottleneck) -> str:
    if found.is_over:
        return "were" if found.late.are_several else "was"
    return "are" if found.late.are_several else "is"


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _sentence(facts: Causes, slower: SlowerLink | None) -> str:
    found, hosts, ranks = facts.found, facts.speed.hosts, facts.speed.ranks
    sentences = [_verdict_in_words(facts), _second_in_words(facts), _when_in_words(found)]
    if facts.bad is not None:
        sentences.append(links.intermittent_in_words(facts.bad, facts.bad_for))
    sentences.append(_crowded_in_words(facts))
    if ranks > 1:
        now_and_then = facts.bad is not None
        slow_link = links.slow_link_in_words(
            facts.cap, facts.at_most, hosts, now_and_then, facts.cap_turns
        )
        sentences += [
            links.traffic_in_words(hosts),
            slow_link if facts.is_slow_network else "",
            sentence_of(slower_in_words(slower)) if slower else "",
            links.retransmitted_in_words(hosts, found.verdict),
        ]
    if facts.missing_ranks:
        sentences.append(
            f"Nothing was recorded of {count(facts.missing_ranks, 'rank')}, so the network's part "
            "may be smaller than this."
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _verdict_in_words(facts: Causes) -> str:
    found = facts.found
    split, shares = found.split, shares_of(found.split)
    step = f"the mean step of {seconds(split.step_s)}"
    computing = f"computing takes {percent(shares.compute)} (on the fastest rank)"
    match found.verdict:
        case "network-bound":
            return (
                f"The network is the bottleneck: of {step} it takes {seconds(split.network_s)} "
                f"({percent(shares.network)}) that no computing hides, while {computing}."
            )
        case "latency-bound":
            return (
                f"The latency of the network (the time a message needs on its way, however short "
                f"it is) is the bottleneck, not its rate: of {step} the ranks wait "
                f"{seconds(split.network_s)} ({percent(shares.network)}) for it, and as many empty "
                f"messages would take about as long; {computing}."
            )
        case "straggler":
            return _straggler_in_words(facts, step)
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
    if facts.speed.ranks == 1:
        alone = f"computing takes {percent(shares.compute)}"
        return f"One worker sends nothing to other hosts: of {step} {alone}{rest}."
    return f"The network is not the bottleneck: of {step} {computing}{rest}."


def _not_the_network(shares: Shares) -> str:
    if shares.network >= BOUND_SHARE:
        return "The network is not what holds the run back most"
    return "The network is not the bottleneck"


def _straggler_in_words(facts: Causes, step: str) -> str:
    split, late = facts.found.split, facts.found.late
    shares = shares_of(split)
    opening = _not_the_network(shares)
    waits = f"{seconds(split.straggling_s)} ({percent(shares.straggling)})"
    if facts.is_shared_unevenly:
        return (
            f"{opening}: of {step} the first rank waits {waits} for the last one, because the "
            "micro-batches of a step do not divide evenly among the ranks; no host is slow."
        )
    if not late.is_always_the_same:
        words = (
            f"{opening}: of {step} the first rank waits {waits} for the last one, which changes "
            "from step to step."
        )
        return f"{words} {whose_waiting(late)}." if late.early else words
    why = because_of_data(late) if data_makes_late(split) else ""
    waited = f"of {step} the others wait {waits}"
    if facts.found.turns:
        slow = f"one host after another is slower than the others{why}"
        return f"{opening}: {slow}; {waited} for {whom_in_words(facts.found)}."
    if late.are_several:
        return f"{opening}: {late.who} are slower than the others{why}; {waited} for them."
    return (
        f"{opening}: {late.who} is slower than the others{why}; it comes last in "
        f"{percent(late.step_share)} of the steps, and {waited} for it."
    )


def _second_in_words(facts: Causes) -> str:
    """Names what else is large enough to be a verdict by itself."""
    split, late = facts.found.split, facts.found.late
    is_one = late.is_always_the_same and not facts.is_shared_unevenly
    named = {
        "network-bound": ("the network takes", split.network_s),
        "straggler": (
            f"waiting for {late.who if is_one else 'the slowest rank'} takes",
            split.straggling_s,
        ),
        "input-bound": ("waiting for data takes", split.data_s),
    }
    first = "network-bound" if facts.found.verdict == "latency-bound" else facts.found.verdict
    others = [
        f"{what} {seconds(lasts_s)} ({percent(share)})"
        for verdict, share in candidates(shares_of(split), late).items()
        if share >= BOUND_SHARE and verdict != first
        for what, lasts_s in [named[verdict]]
    ]
    return f"In addition, {listed(others)}." if others else ""


def _when_in_words(found: RunBottleneck) -> str:
    when = when_it_holds(found)
    if not when:
        return ""
    over = f"{over}, and " if (over := over_in_words(found)) else ""
    return (
        f"That holds {when}; {over}over the whole run the mean step took "
        f"{seconds(found.run_split.step_s)}, {percent(shares_of(found.run_split).network)} "
        f"of it for the network.{_before_in_words(found)}"
    )


def _before_in_words(found: RunBottleneck) -> str:
    """Names what held the run back before this; empty: nothing did."""
    before = "network-bound" if found.before == "latency-bound" else found.before
    if found.verdict == "compute-bound" or before not in WAITED_FOR:
        return ""
    return f" Just before, the run waited for {WAITED_FOR[before]}."


def _crowded_in_words(facts: Causes) -> str:
    """Names the programs of others, where they slow down computing or the one that all wait for."""
    if facts.found.verdict not in ("straggler", "compute-bound"):
        return ""
    return crowded_in_words(facts.crowded, facts.found.late, facts.found.verdict == "straggler")


def crowded_in_words(crowded: Mapping[str, ProcessorLoad], late: Late, is_waited_for: bool) -> str:
    """`is_waited_for`: only what runs on the hosts that the others wait for is of interest."""
    words = late.who.replace(",", " ").split()
    if is_waited_for and late.is_always_the_same and not late.are_ranks:
        crowded = {host: load for host, load in crowded.items() if host in words}
    if not crowded:
        return ""
    named = [share_in_words([load]) for load in crowded.values()]
    stolen = [load for load in crowded.values() if not load.stolen <= load.foreign]
    who = "Other machines on the same hardware" if stolen else "Other programs"
    how = " (steal, to the system)" if stolen else ""
    return f"{who} take {listed(named)}{how}, which slows the run."


def _step_figures(split: StepSplit, ranks: int) -> list[Figure]:
    shares = shares_of(split)
    step_s = split.step_s or math.nan
    exposed = "waiting for the network that no computing hides"
    named = [
        ("mean step", split.step_s, math.nan, ""),
        ("computing, fastest rank", split.compute_s, shares.compute, "of the rank ready first"),
        ("computing, all ranks", split.busy_s, split.busy_s / step_s, "mean over the ranks"),
        ("exposed network", split.network_s, shares.network, exposed),
        ("waiting for stragglers", split.straggling_s, shares.straggling, "for the last rank"),
        ("waiting for data", split.data_s, shares.data, ""),
        ("waiting for a checkpoint's copy", split.checkpoint_s, shares.checkpoint, ""),
        ("rest of the step", split.rest_s, shares.rest, ""),
    ]
    found = []
    for name, lasts_s, share, note in named:
        found += [
            Figure(name, lasts_s, "s", note=note),
            Figure(f"{name} share", share, "share", note=note),
        ]
    return [*recorded(*found), Figure("ranks", ranks, "")]


def _phase_figures(found: RunBottleneck) -> list[Figure]:
    steps = [("since step", found.since_step), ("until step", found.until_step)]
    return [
        *(Figure(name, step, "steps") for name, step in steps if step is not None),
        Figure("mean step while it holds", found.split.step_s, "s"),
        Figure("exposed network share while it holds", shares_of(found.split).network, "share"),
    ]


def _slower_figures(slower: SlowerLink) -> list[Figure]:
    where = f"of {slower.where}"
    return [
        Figure("rate measured before the start", slower.before, "bytes/s", note=where),
        Figure("rate of it in the run", slower.now, "bytes/s", note=where),
    ]


def _projected_figures(projected: ProjectedSteps) -> list[Figure]:
    same = "for the same number of tokens"
    double_s, fourfold_s = projected.double_updates_s, projected.fourfold_updates_s
    hidden = "beside backward, from the bytes and the highest rate"
    return recorded(
        Figure("step with a link ten times faster", projected.faster_link_s, "s"),
        Figure("step with updates twice as large", double_s, "s", note=same),
        Figure("step with updates four times as large", fourfold_s, "s", note=same),
        Figure("hidden network", projected.hidden_s, "s", note=hidden),
    )


def _mode_figures(modes: SyncModes) -> list[Figure]:
    return [
        Figure(f"step with sync.mode {_mode_name(each)}", each.step_s, "s", note=note)
        for each in modes.others
        for note in [
            f"forecast: {size(each.bytes_per_step)} per step and host, "
            f"{modes.speed_up(each):.2f} times as fast{_choice(modes, each)}"
        ]
    ]


def _choice(modes: SyncModes, each: Forecast) -> str:
    if each.settings.mode == OPT_IN.mode:
        return "; never advised, since some quality may go"
    return "; advised" if modes.chosen and each.settings == modes.chosen.settings else ""


def _mode_name(each: Forecast) -> str:
    """bf16, or local with its window and wire."""
    sync = each.settings
    if not sync.is_local:
        return sync.mode
    return f"{sync.mode}, {count(sync.window_steps, 'step')}, {sync.wire}"
