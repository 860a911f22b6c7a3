"""Which host, or which rank, the others wait for, and for how long."""

from collections.abc import Sequence

from dragoman.diagnosis.answers.network import crowded_in_words
from dragoman.diagnosis.answers.network_links import intermittent_figures, intermittent_in_words
from dragoman.diagnosis.findings import Confidence, Figure, Finding
from dragoman.diagnosis.phrasing import listed, percent, plain_name, seconds
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS, Late, data_makes_late, shares_of
from dragoman.diagnosis.speed.causes import WAITED_FOR, causes_of, slowed_hosts
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
from dragoman.diagnosis.speed.overview import SpeedFacts, speed_of
from dragoman.diagnosis.speed.phases import (
    RunBottleneck,
    in_a_word,
    over_in_words,
    straggling_of,
    when_it_holds,
    whom_in_words,
)
from dragoman.diagnosis.speed.work_shares import work_shares

NOTABLE_SHARE = 0.05
"""Of the step, for one that is always the last."""
NOTABLE_SHARE_IN_TURN = 0.10
"""Chance alone makes some rank the last of each step."""
UNEVEN_WORK = "uneven work"
EVIDENCE = ("straggling_s", "step_s")


def answer(run: RunFacts) -> Finding | None:
    """Returns None where no rank waits for another for long."""
    speed = speed_of(run)
    if speed is None:
        return None
    split, share = speed.split, speed.shares.straggling
    waits = waits_by_attempt(run.step_parts, speed.names, speed.rows)
    held = _held(run, speed)
    late = held.late if held else late_of(waits)
    if not share >= (NOTABLE_SHARE if late.is_always_the_same else NOTABLE_SHARE_IN_TURN):
        return None
    own = held.split if held else split
    unevenly = work_shares(run).explain(own)
    crowded = slowed_hosts(run)
    named = [one for one in waited_for(waits) if one.share >= WORTH_NAMING]
    if held:
        bad = causes_of(run, speed, held).bad
    else:
        bad = intermittent(*(run.step_parts[name][speed.rows] for name in EVIDENCE))
    whom = WAITED_FOR["straggler"]
    own_share = shares_of(own).straggling
    sentences = [_uneven(own, own_share) if unevenly else _sentence(late, named, own, held)]
    if held and (when := when_it_holds(held)):
        over = f"{over}, and " if (over := over_in_words(held)) else ""
        of_all = f"{seconds(split.straggling_s)} ({percent(share)})"
        sentences.append(f"That holds {when}; {over}over the whole run ranks wait {of_all}.")
    if bad is not None:
        sentences.append(intermittent_in_words(bad, whom))
    if not unevenly:
        sentences.append(crowded_in_words(crowded, late, is_waited_for=True))
    what_to_do = advice.on_lateness(run, late, own, crowded, unevenly)
    return Finding(
        verdict=UNEVEN_WORK if unevenly else _verdict(late, held),
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
        advice=advice.for_when_it_returns(held, what_to_do) if held else what_to_do,
        plain=plain_name(_plain(late, unevenly, own_share, bad, held)),
    )


def _held(run: RunFacts, speed: SpeedFacts) -> RunBottleneck | None:
    """Returns when ranks wait for each other; None: not known, or in no part of the run for long.
    Where late data holds the run back, they do so when it does."""
    found = speed.bottleneck
    if found is None or found.verdict == "straggler":
        return found
    if found.verdict == "input-bound" and data_makes_late(found.split):
        return found
    return straggling_of(run.step_parts, speed.rows, speed.link, speed.names)


def _confidence(split: StepSplit, steps: int) -> Confidence:
    if steps < FEW_STEPS or split.small_message_s >= split.straggling_s:
        return "low"
    return "medium" if split.small_message_s >= split.straggling_s / 2 else "high"


def _verdict(late: Late, held: RunBottleneck | None) -> str:
    if held and held.turns:
        return ", then ".join(turn.late.who for turn in held.turns)
    if late.is_always_the_same:
        return late.who
    return f"all but {late.early}" if late.early else "several in turn"


def _plain(
    late: Late,
    unevenly: bool,
    share: float,
    bad: Intermittent | None,
    held: RunBottleneck | None,
) -> str:
    """`share`: of the time in which it is so."""
    when = in_a_word(held) if held else ""
    over = f"; {over}" if held and (over := over_in_words(held)) else ""
    often = f"{100 * share:.0f} % of the time{when}"
    if bad is not None:
        often = f"now and then, in {100 * bad.step_share:.0f} % of the steps{when}"
    if unevenly:
        return f"Yes, {often}: the work of a step does not divide evenly among them{over}."
    if late.is_always_the_same:
        whom = whom_in_words(held) if held else late.who
        return f"Yes, {often}: the others {'waited' if over else 'wait'} for {whom}{over}."
    if late.early:
        return f"Only {late.early} waits, {often}: it is faster than the others{over}."
    return f"Yes, {often}, but for a different one from step to step{over}."


def _uneven(split: StepSplit, share: float) -> str:
    return (
        f"In the mean step the first rank waits {seconds(split.straggling_s)} ({percent(share)}) "
        "for the last one, because micro-batches, which are given out whole, do not divide evenly "
        "among the ranks: the tokens of each rank account for the waiting."
    )


def _sentence(
    late: Late, named: Sequence[WaitedFor], split: StepSplit, held: RunBottleneck | None
) -> str:
    waited = f"{seconds(split.straggling_s)} ({percent(shares_of(split).straggling)})"
    if held and held.turns:
        whom = whom_in_words(held)
        return f"In the mean step the others wait {waited} for one that is slow: {whom}."
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
