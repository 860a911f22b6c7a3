"""Turns the events of a run and the samples of its processes into figures. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from train_bench.measurement import StepEnd, Usage, work_between

from dragoman.telemetry.events import StepDone, from_line

Figures = Mapping[str, float]
"""Figure -> value, in seconds, bytes and tokens."""


class TimedStep(NamedTuple):
    at: float
    """Its end, on the machine's monotonic clock, which all workers and lab nodes share."""
    done: StepDone


Ranks = Mapping[int, Sequence[TimedStep]]


def step_figures(ranks: Ranks, warm_up: int) -> dict[str, float]:
    """Returns speed and parts of the steps after the warm-up; tokens are those of all ranks."""
    lead = ranks[0]
    if len(lead) <= warm_up:
        raise ValueError(f"{len(lead)} steps, of which {warm_up} are not counted")
    counted = [[step.done for step in of_rank[warm_up:]] for of_rank in ranks.values()]
    together = list(zip(*counted, strict=True))
    seconds = lead[-1].at - lead[warm_up - 1].at
    tokens = sum(step.tokens for step in counted[0])
    return {
        "tokens_per_s": tokens / seconds,
        "token_s": seconds / tokens,
        "step_s": statistics.median(max(d.step_s for d in step) for step in together),
        "exposed_s": statistics.median(map(exposed_communication_s, together)),
        "data_s": statistics.mean(max(d.parts_s["data"] for d in step) for step in together),
        "tokens_per_step": tokens / len(together),
    }


def exposed_communication_s(step: Iterable[StepDone]) -> float:
    """Returns what the rank that waits the least waits for gradients to travel, in one step.

    What a faster rank waits for a slower one is not the network's. A single rank waits for none.
    """
    return min(done.parts_s.get("communication", 0.0) for done in step)


def usage_figures(
    lead: Sequence[TimedStep], usage: Sequence[Usage], started_at: float, warm_up: int
) -> dict[str, float]:
    """Returns processor time and memory of all processes of a run during its counted steps."""
    ends = [StepEnd(step.at, step.done.tokens) for step in lead]
    work = work_between(ends, usage, warm_up, len(ends) - warm_up)
    inside = between(usage, ends[warm_up - 1].at, ends[-1].at)
    return {
        "cpu_s_per_token": work.cpu_s / work.tokens,
        "first_step_s": ends[0].at - started_at,
        "resident_bytes": statistics.median(sample.resident_bytes for sample in inside),
        "own_bytes": statistics.median(sample.own_bytes for sample in inside),
        "summed_peak_bytes": max(sample.resident_bytes for sample in usage),
    }


def between(usage: Sequence[Usage], begin: float, end: float) -> list[Usage]:
    """Returns the samples of an interval, or the one that is nearest to its end."""
    inside = [sample for sample in usage if begin <= sample.at <= end]
    return inside or [min(usage, key=lambda sample: abs(sample.at - end))]


def common_tokens_per_s(runs: Sequence[Sequence[TimedStep]], warm_up: int) -> float:
    """Returns tokens a second of runs beside each other, while all of them were taking steps.

    A run that has ended leaves the processors to the others, so what they do afterwards does not
    count. Steps that are cut by the interval's ends count by the share that lies in it.
    """
    begin = max(run[warm_up - 1].at for run in runs)
    end = min(run[-1].at for run in runs)
    if end <= begin:
        raise ValueError("the runs did not take any steps at the same time")
    tokens = 0.0
    for run in runs:
        for before, step in pairwise(run):
            inside_s = min(step.at, end) - max(before.at, begin)
            tokens += step.done.tokens * max(0.0, inside_s) / (step.at - before.at)
    return tokens / (end - begin)


def window_figures(steps: Sequence[TimedStep], usage: Sequence[Usage]) -> dict[str, float]:
    """Returns step time and memory in a window of a long run.

    A step is counted from end to end, so that all that happens between steps is in it. The first
    of `steps` only marks the beginning.
    """
    taken_s = [step.at - before.at for before, step in pairwise(steps)]
    inside = between(usage, steps[0].at, steps[-1].at)
    return {
        "step_median_s": statistics.median(taken_s),
        "step_mean_s": statistics.mean(taken_s),
        "resident_bytes": statistics.median(sample.resident_bytes for sample in inside),
        "own_bytes": statistics.median(sample.own_bytes for sample in inside),
    }


def bytes_of_lines(lines: Iterable[bytes], begin: float, end: float) -> int:
    """Returns how many bytes of events were recorded after `begin` until `end`."""
    return sum(
        len(line)
        for line in lines
        if (stamped := from_line(line)) and begin < stamped.monotonic_at <= end
    )


class FolderSizes(NamedTuple):
    """Bytes of folders at a moment of the monotonic clock."""

    at: float
    run_bytes: int
    checkpoint_bytes: int


def sizes_at(sizes: Sequence[FolderSizes], at: float) -> FolderSizes:
    """Returns the last sample that is not later, or the first of all."""
    return max(
        (size for size in sizes if size.at <= at), key=lambda size: size.at, default=sizes[0]
    )
