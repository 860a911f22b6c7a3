"""Which host, or which rank, the others wait for, and for how long."""

from collections.abc import Sequence

from dragoman.diagnosis.answers.network import crowded_in_words
from dragoman.diagnosis.answers.network_links import intermittent_figures, intermittent_in_words
from dragoman.diagnosis.findings import Confidence, Figure, Finding
from dragoman.diagnosis.phrasing import listed, percent, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS, Late, data_makes_late, shares_of
from dragoman.diagnosis.speed.causes import WAITED_FOR, slowed_hosts
from dragoman.diagnosis.speed.intermittent import Intermittent, intermittent
from dragoman.diagnosis.speed.lateness import (
    WORTH_NAMING,
    WaitedFor,
    because_of_data,
    late_of,
    waited_for,
    waits_by_attempt,
    whose_waiting,
)
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.phases import RunBottleneck, when_it_holds
from dragoman.diagnosis.speed.work_shares import work_shares

NOTABLE_SHARE = 0.05
"""Of the step, for one that is always the last."""
NOTABLE_SHARE_IN_TURN = 0.10
"""Chance alone makes some rank the last of each step."""
UNEVEN_WORK = "uneven work"


def answer(run: RunFacts) -> Finding | None:
    """Returns None where no rank waits for another for long."""
    speed = speed_of(run)
    if speed is None:
        return None
    split, share = speed.split, speed.shares.straggling
    waits = waits_by_attempt(run.step_parts, speed.names, speed.rows)
    late = late_of(waits)
    held = _late_in_a_part(speed.bottleneck, late)
    if held:
        late = held.late
    if not share >= (NOTABLE_SHARE if late.is_always_the_same else NOTABLE_SHARE_IN_TURN):
        return None
    unevenly = work_shares(run).explain(split)
    crowded = slowed_hosts(run)
    named = [one for one in waited_for(waits) if one.share >= WORTH_NAMING]
    columns = (run.step_parts[name][speed.rows] for name in ("straggling_s", "step_s"))
    bad = intermittent(*columns)
    whom = WAITED_FOR["straggler"]
    sentences = [_uneven(split, share) if unevenly else _sentence(late, named, share, split)]
    if held:
        own, its_share = held.split, shares_of(held.split).straggling
        first = _sentence(late, named, its_share, own)
        of_all = f"{seconds(split.straggling_s)} ({percent(share)})"
        when = f"That holds {when_it_holds(held)}; over the whole run ranks wait {of_all}."
        sentences = [first, when]
    if bad is not None:
        sentences.append(intermittent_in_words(bad, whom))
    if not unevenly:
        sentences.append(crowded_in_words(crowded, late, is_waited_for=True))
    return Finding(
        verdict=UNEVEN_WORK if unevenly else _verdict(late),
        confidence=_confidence(split, len(speed.rows)),
        sentence=" ".join(words for words in sentences if words),
        evidence=[
            Figure("waiting for stragglers", split.straggling_s, "s", note="of a mean step"),
            Figure("waiting for stragglers share", share, "share"),
            Figure("waited in the whole run", advice.total_s(run, "straggling_s"), "s"),
            Figure("one small message", split.small_message_s, "s", note="so wrong it may be"),
            *intermittent_figures(bad, whom),
            *(Figure(f"for {one.who}", one.share, "share", note=_often(one)) for one in named),
        ],
        advice=advice.on_lateness(run, late, split, crowded, unevenly),
        plain=_plain(late, unevenly, share, bad),
    )


def _late_in_a_part(found: RunBottleneck | None, late: Late) -> RunBottleneck | None:
    """Returns the bottleneck where the same host is late in a part of the run only."""
    if found is None or found.verdict != "straggler" or late.is_always_the_same:
        return None
    return found if found.late.is_always_the_same and when_it_holds(found) else None


def _confidence(split: StepSplit, steps: int) -> Confidence:
    if steps < FEW_STEPS or split.small_message_s >= split.straggling_s:
        return "low"
    return "medium" if split.small_message_s >= split.straggling_s / 2 else "high"


def _verdict(late: Late) -> str:
    if late.is_always_the_same:
        return late.who
    return f"all but {late.early}" if late.early else "several in turn"


def _plain(late: Late, unevenly: bool, share: float, bad: Intermittent | None) -> str:
    often = f"{100 * share:.0f} % of the time"
    if bad is not None:
        often = f"now and then, in {100 * bad.step_share:.0f} % of the steps"
    if unevenly:
        return f"Yes, {often}: the work of a step does not divide evenly among them."
    if late.is_always_the_same:
        return f"Yes, {often}: the others wait for {late.who}."
    if late.early:
        return f"Only {late.early} waits, {often}: it is faster than the others."
    return f"Yes, {often}, but for a different one from step to step."


def _uneven(split: StepSplit, share: float) -> str:
    return (
        f"In the mean step the first rank waits {seconds(split.straggling_s)} ({percent(share)}) "
        "for the last one, because micro-batches, which are given out whole, do not divide evenly "
        "among the ranks: the tokens of each rank account for the waiting."
    )


def _sentence(late: Late, named: Sequence[WaitedFor], share: float, split: StepSplit) -> str:
    waited = f"{seconds(split.straggling_s)} ({percent(share)})"
    if late.is_always_the_same:
        how = "they are late whenever somebody is" if late.are_several else f"it is {_often(late)}"
        why = because_of_data(late) if data_makes_late(split) else ""
        return f"In the mean step the others wait {waited} for {late.who}{why}; {how}."
    if late.early:
        return f"{whose_waiting(late)}: {waited} of the mean step."
    each = [f"{one.who} ({percent(one.share)} of the waiting)" for one in named]
    why = ", mostly because data comes late" if data_makes_late(split) else ""
    return f"In the mean step ranks wait {waited} for each other, in turn for {listed(each)}{why}."


def _often(one: WaitedFor | Late) -> str:
    return f"the last in {percent(one.step_share)} of the steps"
