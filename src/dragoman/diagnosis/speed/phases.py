"""The bottleneck of a whole run, and in which of its phases it has been that. Pure."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.steps import StepParts, StepSplit
from dragoman.diagnosis.speed.bottleneck import (
    FEW_STEPS,
    NOBODY,
    Late,
    Link,
    Verdict,
    depends_on_who_is_late,
    verdict_of,
)
from dragoman.diagnosis.speed.lateness import RankNames, latest
from dragoman.telemetry.read.tables import Array

MOST_WINDOWS = 100
FEWEST_STEPS = 10
"""In a window: the mean of fewer jumps about."""
SHORTEST_SHARE = 0.05
"""Of all steps: what lasts shorter is noise, or a hiccup."""
CLEARLY_THE_SAME = 0.9
"""Of all waiting in a part of the run that is for one host: chance alone does not make so much of a
part that was looked for."""
LATE_PHASE_SHARE = 0.10
"""Of the run's time: what holds the run back since then is its verdict, though the mean is not
yet."""


class Phase(NamedTuple):
    """Steps in a row that have the same verdict."""

    verdict: Verdict
    begin: int
    """Index of its first step, and of the one after its last."""
    end: int


class RunBottleneck(NamedTuple):
    verdict: Verdict
    split: StepSplit
    """Of the mean step for which the verdict holds."""
    late: Late
    since_step: int | None
    """None: from the beginning."""
    until_step: int | None
    """None: to the end."""
    phases: int
    """With this verdict between these two: 1 where it held all the time."""
    run_split: StepSplit
    """Of the mean step of the whole run."""


def bottleneck_of(steps: StepParts, rows: Array, link: Link, names: RankNames) -> RunBottleneck:
    """Returns what holds the run back as a whole, and since when or until when it does."""
    run_split = steps.mean(rows)
    verdict = verdict_over(steps, rows, link, names)
    phases = phases_of(steps, rows, link, names)
    last = phases[-1]
    if verdict == "compute-bound" and last.verdict != "compute-bound":
        seconds = steps["step_s"][rows]
        if seconds[last.begin :].sum() >= LATE_PHASE_SHARE * seconds.sum():
            verdict = last.verdict
    own = [phase for phase in phases if phase.verdict == verdict]
    if not own or len(phases) == 1:
        late = latest(steps, names, rows)
        if verdict == "straggler" and not late.is_always_the_same:
            return _late_for_a_while(steps, rows, names, late) or RunBottleneck(
                verdict, run_split, late, None, None, 1, run_split
            )
        return RunBottleneck(verdict, run_split, late, None, None, 1, run_split)
    held = rows[np.concatenate([np.arange(phase.begin, phase.end) for phase in own])]
    since, until = _bounds(steps, rows, own)
    late = latest(steps, names, held)
    return RunBottleneck(verdict, steps.mean(held), late, since, until, len(own), run_split)


def _late_for_a_while(
    steps: StepParts, rows: Array, names: RankNames, late: Late
) -> RunBottleneck | None:
    """Returns the part of a run, up to a step or since one, in which the others wait for a single
    host, where in the rest of it they wait for each other in turn; None: there is no such part."""
    ranks = list(steps.waits_s)
    waits_s = np.stack([waited_s[rows] for waited_s in steps.waits_s.values()])
    last = np.where(np.isnan(waits_s), np.inf, waits_s).argmin(axis=0)
    is_late = np.array(
        [
            names.get((attempt, ranks[place]), "") == late.who
            for attempt, place in zip(steps.attempt[rows].tolist(), last.tolist(), strict=True)
        ]
    )
    waited_s = np.where(is_late, np.nan_to_num(steps["straggling_s"][rows]), 0.0)
    place = change_point(waited_s, 0, len(rows))
    parts = rows[:place], rows[place:]
    held = max(parts, key=lambda part: waited_s[np.isin(rows, part)].mean() if len(part) else 0.0)
    found = latest(steps, names, held)
    split = steps.mean(held)
    is_clear = found.share >= CLEARLY_THE_SAME and found.who == late.who
    if len(held) < FEW_STEPS or not is_clear or verdict_of(split, late=found) != "straggler":
        return None
    step_before = int(steps.step[rows[place - 1]])
    is_first = held is parts[0]
    since, until = (None, step_before) if is_first else (step_before + 1, None)
    return RunBottleneck("straggler", split, found, since, until, 1, steps.mean(rows))


def when_it_holds(found: RunBottleneck) -> str:
    """Returns since when and until when, in words; empty: all the time."""
    since, until = found.since_step, found.until_step
    match since, until:
        case None, None:
            when = "in parts of the run" if found.phases > 1 else ""
        case _, None:
            when = f"since step {since:,}"
        case None, _:
            when = f"until step {until:,}"
        case _:
            when = f"from step {since:,} to step {until:,}"
    return when + (f", {found.phases} times, and not in between" if found.phases > 1 else "")


def verdict_over(
    steps: StepParts, rows: Array, link: Link, names: RankNames, held: str = ""
) -> Verdict:
    """Returns what holds these steps back in the mean; a report and a live diagnosis both ask."""
    split = steps.mean(rows)
    late = latest(steps, names, rows) if depends_on_who_is_late(split) else NOBODY
    return verdict_of(split, link, late, held)


def phases_of(steps: StepParts, rows: Array, link: Link, names: RankNames) -> list[Phase]:
    """Returns the phases of these steps, whose indices count in `rows`."""
    bounds = np.linspace(0, len(rows), _windows(len(rows)) + 1).astype(np.int64)
    found: list[Phase] = []
    held = ""
    for begin, end in itertools.pairwise(bounds.tolist()):
        held = verdict_over(steps, rows[begin:end], link, names, held)
        if found and found[-1].verdict == held:
            found[-1] = found[-1]._replace(end=end)
        else:
            found.append(Phase(held, begin, end))
    return _without_short_ones(found, max(FEWEST_STEPS, SHORTEST_SHARE * len(rows)))


def _windows(steps: int) -> int:
    return max(1, min(MOST_WINDOWS, steps // FEWEST_STEPS))


def _without_short_ones(phases: Sequence[Phase], shortest: float) -> list[Phase]:
    """Joins a short phase to the one before it, or to the one after it where it is the first."""
    found: list[Phase] = []
    for phase in phases:
        joins = found and (found[-1].verdict == phase.verdict or phase.end - phase.begin < shortest)
        if joins:
            found[-1] = found[-1]._replace(end=phase.end)
        elif found and found[-1].end - found[-1].begin < shortest:
            found[-1] = phase._replace(begin=found[-1].begin)
        else:
            found.append(phase)
    return found


def _bounds(steps: StepParts, rows: Array, own: Sequence[Phase]) -> tuple[int | None, int | None]:
    """Returns the steps at which what the verdict rests on begins and ends, to the step."""
    values = evidence_of(own[0].verdict, steps)[rows]
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
