"""The bottleneck of a whole run, and since when or until when it has been that. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.answers.stragglers import latest
from dragoman.diagnosis.run.steps import StepParts, StepSplit
from dragoman.diagnosis.speed.bottleneck import Late, Link, Verdict, verdict_of
from dragoman.diagnosis.speed.phases import Stretch, change_place, stretches_of, window_steps
from dragoman.telemetry.read.columns import Array

LATE_STRETCH_SHARE = 0.10
"""Of the run's time: what holds the run back since then is its verdict, though the mean is not
yet."""


class Judgement(NamedTuple):
    verdict: Verdict
    split: StepSplit
    """Of the mean step for which the verdict holds."""
    late: Late
    since_step: int | None
    """None: from the beginning."""
    until_step: int | None
    """None: to the end."""
    stretches: int
    """Between these two: 1 where it held all the time."""
    run_split: StepSplit
    """Of the mean step of the whole run."""


def judge(
    anatomy: StepParts, rows: Array, link: Link, names: Mapping[tuple[int, int], str]
) -> Judgement:
    """For the run as a whole, and since when or until when that has been so."""

    def verdict_on(split: StepSplit, window: Array, held: str) -> Verdict:
        return verdict_of(split, link, latest(anatomy, names, window), held)

    whole = anatomy.mean(rows)
    overall = verdict_on(whole, rows, "")
    stretches = stretches_of(anatomy, rows, verdict_on)
    last = stretches[-1]
    verdict: Verdict = overall
    if overall == "compute-bound" and last.verdict != "compute-bound":
        seconds = anatomy["step_s"][rows]
        if seconds[last.begin :].sum() >= LATE_STRETCH_SHARE * seconds.sum():
            verdict = last.verdict
    own = [stretch for stretch in stretches if stretch.verdict == verdict]
    if not own or len(stretches) == 1:
        return Judgement(verdict, whole, latest(anatomy, names, rows), None, None, 1, whole)
    places = np.concatenate([np.arange(stretch.begin, stretch.end) for stretch in own])
    held = rows[places]
    since, until = _bounds(anatomy, rows, own, verdict)
    late = latest(anatomy, names, held)
    return Judgement(verdict, anatomy.mean(held), late, since, until, len(own), whole)


def _bounds(
    anatomy: StepParts, rows: Array, own: Sequence[Stretch], verdict: Verdict
) -> tuple[int | None, int | None]:
    """The steps at which what the verdict rests on begins and ends, found to the step."""
    column = {"straggler": "straggling_s", "input-bound": "data_s", "compute-bound": "step_s"}
    values = np.nan_to_num(anatomy[column.get(verdict, "network_s")][rows])
    reach = 2 * window_steps(len(rows))
    first, last = own[0].begin, own[-1].end
    since = until = None
    if first > 0:
        place = change_place(values, max(0, first - reach), min(len(rows), first + reach))
        # Behind the last step before: the first one of an attempt is not among the rows.
        since = int(anatomy.step[rows[place - 1]]) + 1
    if last < len(rows):
        place = change_place(values, max(0, last - reach), min(len(rows), last + reach))
        until = int(anatomy.step[rows[place - 1]])
    return since, until
