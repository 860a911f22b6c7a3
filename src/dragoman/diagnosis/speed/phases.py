"""The bottleneck of a whole run, and in which of its phases it has been that. Pure."""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dragoman.diagnosis.phrasing import listed
from dragoman.diagnosis.run.steps import StepParts, StepSplit
from dragoman.diagnosis.speed.bottleneck import (
    FEW_STEPS,
    NOBODY,
    Late,
    Link,
    Verdict,
    depends_on_who_is_late,
    or_zero,
    verdict_of,
)
from dragoman.diagnosis.speed.intermittent import intermittent
from dragoman.diagnosis.speed.lateness import (
    CLEARLY_THE_SAME,
    RankNames,
    culprits_of,
    latest,
    waits_without,
)
from dragoman.telemetry.read.tables import Array

MOST_WINDOWS = 100
FEWEST_STEPS = 10
"""In a window: the mean of fewer jumps about."""
SHORTEST_SHARE = 0.05
"""Of all steps: what lasts shorter is noise, or a hiccup."""
MOST_TURNS = 3
"""What moves more often is now here and now there, and nobody's fault in particular."""
CLEARLY_LESS = 0.75
"""Of the waiting: what comes after is better."""
LATE_PHASE_SHARE = 0.10
"""Of the run's time: what holds the run back since then is its verdict, though the mean is not
yet."""


What = TypeVar("What")


class Phase(NamedTuple, Generic[What]):
    """Steps in a row of which the same holds: a verdict, or who is to blame."""

    what: What
    begin: int
    """Index of its first step, and of the one after its last."""
    end: int


class Turn(NamedTuple):
    """A part of a bottleneck in which the others wait for one host, where it has moved."""

    late: Late
    since_step: int | None
    until_step: int | None


class RunBottleneck(NamedTuple):
    verdict: Verdict
    split: StepSplit
    """Of the mean step for which the verdict holds."""
    late: Late
    """Where it has moved, of the last turn."""
    since_step: int | None
    """None: from the beginning."""
    until_step: int | None
    """None: to the end."""
    phases: int
    """With this verdict between these two: 1 where it held all the time."""
    run_split: StepSplit
    """Of the mean step of the whole run."""
    is_over: bool = False
    """What follows is better; else something else holds the run back since then."""
    turns: Sequence[Turn] = ()
    """Whom the others waited for one after another, where that has changed a few times."""
    before: Verdict = "compute-bound"
    """What held the run back just before."""
    rows: Array | Sequence[int] = ()
    """Of the steps for which the verdict holds."""


def bottleneck_of(steps: StepParts, rows: Array, link: Link, names: RankNames) -> RunBottleneck:
    """Returns what holds the run back as a whole, and since when or until when it does."""
    verdict = verdict_over(steps, rows, link, names)
    phases = phases_of(steps, rows, link, names)
    return _held_by(_present_verdict(verdict, phases, steps, rows), phases, steps, rows, names)


def straggling_of(
    steps: StepParts, rows: Array, link: Link, names: RankNames
) -> RunBottleneck | None:
    """Returns whom ranks wait for, and when, where something else holds the run back as a whole;
    None: in no part of the run it is mostly that."""
    phases = phases_of(steps, rows, link, names)
    if not any(phase.what == "straggler" for phase in phases):
        return None
    found = _held_by("straggler", phases, steps, rows, names)
    last = np.searchsorted(rows, found.rows[-1])
    then_s = or_zero(steps.mean(rows[last + 1 :]).straggling_s)
    return found._replace(is_over=then_s <= CLEARLY_LESS * found.split.straggling_s)


def _held_by(
    verdict: Verdict,
    phases: Sequence[Phase[Verdict]],
    steps: StepParts,
    rows: Array,
    names: RankNames,
) -> RunBottleneck:
    """Returns when this verdict holds, and for whom."""
    own = [phase for phase in phases if phase.what == verdict]
    comes_and_goes = len(own) > 1 and intermittent(
        evidence_of(verdict, steps)[rows], steps["step_s"][rows]
    )
    # Where it comes and goes, or each part is held back by something else, it is the mean's.
    if not own or comes_and_goes:
        own = [Phase(verdict, 0, len(rows))]
    places = np.concatenate([np.arange(phase.begin, phase.end) for phase in own])
    held = rows[places]
    since, until = _bounds(steps, rows, own)
    then = steps.mean(rows[own[-1].end :])
    before = [phase.what for phase in phases if phase.end == own[0].begin]
    found = RunBottleneck(
        verdict,
        steps.mean(held),
        latest(steps, names, held),
        since,
        until,
        len(own),
        steps.mean(rows),
        is_over=is_better(then, steps.mean(held)),
        before=before[0] if before else "compute-bound",
        rows=held,
    )
    return _with_turns(found, steps, rows, places, names) if verdict == "straggler" else found


def _present_verdict(
    of_all: Verdict, phases: Sequence[Phase[Verdict]], steps: StepParts, rows: Array
) -> Verdict:
    """Returns the verdict of the whole run, or of its last phase where that is no better."""
    last, seconds = phases[-1], steps["step_s"][rows]
    if last.what in ("compute-bound", of_all):
        return of_all
    if seconds[last.begin :].sum() < LATE_PHASE_SHARE * seconds.sum():
        return of_all
    before = [rows[phase.begin : phase.end] for phase in phases if phase.what == of_all]
    if not before:
        return of_all
    is_less = is_better(steps.mean(rows[last.begin :]), steps.mean(np.concatenate(before)))
    return of_all if is_less else last.what


def is_better(then: StepSplit, now: StepSplit) -> bool:
    """Returns whether a step waits clearly less; not where there are no such steps."""
    return waiting_s(then) <= CLEARLY_LESS * waiting_s(now) if then.step_s >= 0 else False


def waiting_s(split: StepSplit) -> float:
    return or_zero(split.network_s) + or_zero(split.straggling_s) + split.data_s


def _with_turns(
    found: RunBottleneck, steps: StepParts, rows: Array, places: Array, names: RankNames
) -> RunBottleneck:
    """Returns the bottleneck with whom the others wait for: one host in all of it or in a part of
    it, or a few hosts one after another. `places`: of `rows`, those for which it holds."""
    held = rows[places]

    def culprits(begin: int, end: int, until_now: frozenset[str]) -> frozenset[str]:
        own = culprits_of(steps, names, held[begin:end])
        return until_now if own & until_now else own

    phases = phases_by(len(held), FEW_STEPS, culprits, frozenset())
    named = [phase for phase in phases if phase.what]
    has_moved = len({phase.what for phase in named}) > 1
    if has_moved and len(phases) > MOST_TURNS:
        return found
    if not has_moved and (found.late.is_always_the_same or len(named) != 1):
        return found
    bounds = bounds_of(phases, [_change(steps, held, names, *pair) for pair in pairwise(phases)])
    turns, splits = [], []
    for phase, (begin, end) in zip(phases, pairwise(bounds), strict=True):
        own = held[begin:end]
        late, split = latest(steps, names, own), steps.mean(own)
        is_clear = late.share >= CLEARLY_THE_SAME and len(own) >= FEW_STEPS
        if phase.what and is_clear and verdict_of(split, late=late) == "straggler":
            since = step_since(steps, held, begin) if begin else found.since_step
            until = int(steps.step[held[end - 1]]) if end < len(held) else found.until_step
            turns.append(Turn(late, since, until))
            splits.append((split, steps.mean(rows[places[end - 1] + 1 :])))
    if len(turns) > 1:
        return found._replace(late=turns[-1].late, turns=turns)
    if has_moved or not turns:
        return found
    (turn,), ((split, then),) = turns, splits
    return found._replace(
        late=turn.late,
        split=split,
        since_step=turn.since_step,
        until_step=turn.until_step,
        phases=1,
        is_over=is_better(then, split),
    )


def bounds_of(phases: Sequence[Phase[What]], changes: Sequence[int]) -> list[int]:
    """Returns where phases begin, and the end of the last one: at the changes between them, found
    more exactly, unless these are out of order. Nothing may be left of a phase."""
    begin, end = phases[0].begin, phases[-1].end
    exact = [begin, *changes, end]
    if exact == sorted(exact):
        return exact
    return [*(phase.begin for phase in phases), end]


def _change(
    steps: StepParts,
    rows: Array,
    names: RankNames,
    before: Phase[frozenset[str]],
    after: Phase[frozenset[str]],
) -> int:
    """Returns the index at which the others begin to wait for other hosts, to the step."""
    gained = [
        waits_without(steps, names, rows, phase.what) if phase.what else np.zeros(len(rows))
        for phase in (before, after)
    ]
    reach = 2 * FEW_STEPS
    begin, end = max(before.begin, after.begin - reach), min(after.end, after.begin + reach)
    return change_point(gained[0] - gained[1], begin, end)


def step_since(steps: StepParts, rows: Array, place: int) -> int:
    """Returns the number of the step at a place of these rows. It is counted from the row before
    where only a first step of an attempt lies in between, which is not among the usual ones."""
    before, own = rows[place - 1], rows[place]
    follows = steps.is_first[before + 1 : own].all()
    return int(steps.step[before]) + 1 if follows else int(steps.step[own])


def when_it_holds(found: RunBottleneck) -> str:
    """Returns since when and until when, in words; empty: all the time."""
    when = between_steps(found.since_step, found.until_step)
    if found.phases > 1:
        return f"{when or 'in parts of the run'}, {found.phases} times, and not in between"
    return when


def between_steps(since: int | None, until: int | None) -> str:
    """Returns since when and until when, in words; empty: all the time."""
    match since, until:
        case None, None:
            return ""
        case _, None:
            return f"since step {since:,}"
        case None, _:
            return f"until step {until:,}"
    return f"from step {since:,} to step {until:,}"


def in_a_word(found: RunBottleneck) -> str:
    """Returns the same in few words, to follow "of the time" or "of the steps"."""
    when = between_steps(found.since_step, found.until_step)
    if found.phases > 1:
        when = "in parts of the run"
    return f" {when}" if when else ""


def over_in_words(found: RunBottleneck) -> str:
    """Returns since when it is over, without a period; empty: it is not, or it is no trouble."""
    if not found.is_over or found.until_step is None or found.verdict == "compute-bound":
        return ""
    return f"it has been over since step {found.until_step + 1:,}"


def whom_in_words(found: RunBottleneck) -> str:
    """Returns whom the others wait for, and when where that has moved: node1 until step 300 and
    node2 since step 301."""
    if not found.turns:
        return found.late.who
    return listed(
        [f"{t.late.who} {between_steps(t.since_step, t.until_step)}" for t in found.turns]
    )


def verdict_over(
    steps: StepParts, rows: Array, link: Link, names: RankNames, held: str = ""
) -> Verdict:
    """Returns what holds these steps back in the mean; a report and a live diagnosis both ask."""
    split = steps.mean(rows)
    late = latest(steps, names, rows) if depends_on_who_is_late(split) else NOBODY
    return verdict_of(split, link, late, held)


def phases_of(steps: StepParts, rows: Array, link: Link, names: RankNames) -> list[Phase[Verdict]]:
    """Returns the phases of these steps, whose indices count in `rows`."""

    def verdict(begin: int, end: int, until_now: str) -> Verdict:
        return verdict_over(steps, rows[begin:end], link, names, until_now)

    return phases_by(len(rows), FEWEST_STEPS, verdict, "")


def phases_by(
    count: int, fewest: int, what_of: Callable[[int, int, Any], What], unknown: object
) -> list[Phase[What]]:
    """Returns the phases of so many steps. `what_of`: of a window of `fewest` steps or more, from
    an index to another, and of what held in the window before, at first `unknown`."""
    bounds = np.linspace(0, count, _windows(count, fewest) + 1).astype(np.int64)
    found: list[Phase[What]] = []
    for begin, end in pairwise(bounds.tolist()):
        what = what_of(begin, end, found[-1].what if found else unknown)
        found.append(Phase(what, begin, end))
    return _joined(found, max(fewest, SHORTEST_SHARE * count))


def _windows(steps: int, fewest: int = FEWEST_STEPS) -> int:
    return max(1, min(MOST_WINDOWS, steps // fewest))


def _joined(windows: Sequence[Phase[What]], shortest: float) -> list[Phase[What]]:
    """Joins what is alike, and then a short phase to the one before it, or to the one after it
    where it is the first."""
    alike = [
        Phase(what, own[0].begin, own[-1].end)
        for what, group in groupby(windows, key=lambda window: window.what)
        for own in [list(group)]
    ]
    found: list[Phase[What]] = []
    for phase in alike:
        if found and (found[-1].what == phase.what or phase.end - phase.begin < shortest):
            found[-1] = found[-1]._replace(end=phase.end)
        elif found and found[-1].end - found[-1].begin < shortest:
            found[-1] = phase._replace(begin=found[-1].begin)
        else:
            found.append(phase)
    return found


def _bounds(
    steps: StepParts, rows: Array, own: Sequence[Phase[Verdict]]
) -> tuple[int | None, int | None]:
    """Returns the steps at which what the verdict rests on begins and ends, to the step."""
    values = evidence_of(own[0].what, steps)[rows]
    reach = 2 * -(-len(rows) // _windows(len(rows)))  # two windows

    def step_before_change(near: int) -> int:
        place = change_point(values, max(0, near - reach), min(len(rows), near + reach))
        return int(steps.step[rows[place - 1]])

    first, last = own[0].begin, own[-1].end
    return (
        # Counted from the step before: the first one of an attempt is not among the rows.
        step_before_change(first) + 1 if first > 0 else None,
        step_before_change(last) if last < len(rows) else None,
    )


def evidence_of(verdict: Verdict, steps: StepParts) -> Array:
    """Returns the seconds of each step in which a verdict's beginning and end show."""
    match verdict:
        case "straggler":
            found = steps["straggling_s"]
        case "input-bound":  # a rank's own waiting, and that for ranks which wait for their data
            found = steps["data_s"] + np.fmin(steps["late_data_s"], steps["straggling_s"])
        case "compute-bound":
            found = steps["step_s"]
        case _:
            found = steps["network_s"]
    return np.nan_to_num(found)


def change_point(values: Array, begin: int, end: int) -> int:
    """Returns the index between two others at which the mean of the values changes most: the least
    squares of one step."""
    own = values[begin:end]
    count = len(own)
    if count < 2:
        return begin
    before = np.cumsum(own)[:-1]
    lengths = np.arange(1, count)
    after = own.sum() - before
    between = before**2 / lengths + after**2 / (count - lengths)
    return begin + 1 + int(np.argmax(between))
