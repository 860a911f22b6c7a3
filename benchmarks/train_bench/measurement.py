"""Turns the recorded steps of a candidate into figures. Pure."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class StepEnd(NamedTuple):
    """The end of a step of a process of its own, on the machine's monotonic clock."""

    at: float
    tokens: int
    """Target tokens of this step without padding, end pieces included."""


class Usage(NamedTuple):
    """What a process and its children have used up to a moment."""

    at: float
    cpu_s: float
    peak_bytes: int
    """Largest resident set so far of any one of the processes."""
    resident_bytes: int = 0
    """Resident sets at that moment, added up; what processes share counts for each of them."""
    own_bytes: int = 0
    """The part of it that is not backed by files, so neither code nor mapped shards."""


class Work(NamedTuple):
    """Counted steps, added up."""

    steps: int
    tokens: int
    seconds: float
    cpu_s: float


class Measurement(NamedTuple):
    """The figures of one candidate in one round."""

    tokens_per_s: float
    flops_per_s: float
    """Floating-point operations that its target tokens need; padding is not credited."""
    cpu_ms_per_token: float
    peak_bytes: int
    first_step_s: float
    """From the start of the process to the end of the first step, imports included."""
    tokens_per_step: float


class Gemm(NamedTuple):
    """The machine's speed in large fp32 matrix products."""

    flops_per_s: float
    processors: float
    """How many it had, on average; fewer than its threads: other programs were running."""


class Round(NamedTuple):
    """What was measured of all candidates, one shortly after the other."""

    gemm: Gemm
    """Before and after the candidates, the mean of both."""
    measured: Mapping[str, Measurement]


def measurement_of(
    work: Work, peak_bytes: int, first_step_s: float, flops_per_token: float
) -> Measurement:
    tokens_per_s = work.tokens / work.seconds
    return Measurement(
        tokens_per_s,
        tokens_per_s * flops_per_token,
        1000 * work.cpu_s / work.tokens,
        peak_bytes,
        first_step_s,
        work.tokens / work.steps,
    )


def mean_of(before: Gemm, after: Gemm) -> Gemm:
    return Gemm(*((one + other) / 2 for one, other in zip(before, after, strict=True)))


def work_between(
    steps: Sequence[StepEnd], usage: Sequence[Usage], warm_up: int, counted: int
) -> Work:
    """Adds up `counted` steps, from the end of the last one of the warm-up."""
    if len(steps) < warm_up + counted:
        raise ValueError(f"{len(steps)} steps instead of {warm_up + counted}")
    begin, end = steps[warm_up - 1].at, steps[warm_up + counted - 1].at
    tokens = sum(step.tokens for step in steps[warm_up : warm_up + counted])
    return Work(counted, tokens, end - begin, cpu_s_at(usage, end) - cpu_s_at(usage, begin))


def cpu_s_at(usage: Sequence[Usage], at: float) -> float:
    """Returns the processor seconds used by then, interpolated between two samples."""
    after = min(max(bisect_right([sample.at for sample in usage], at), 1), len(usage) - 1)
    early, late = usage[after - 1], usage[after]
    return early.cpu_s + (late.cpu_s - early.cpu_s) * (at - early.at) / (late.at - early.at)


def read_step_ends(lines: Iterable[str]) -> list[StepEnd]:
    """Reads what a peer's script has logged: one JSON object a step."""
    records = [json.loads(line) for line in lines]
    return [StepEnd(record["at"], record["tokens"]) for record in records]


def read_loop_work(lines: Iterable[str], warm_up: int) -> dict[str, Work]:
    """Adds up the steps of each loop that has taken turns with others in one process."""
    steps: dict[str, list[Work]] = {}
    for line in lines:
        record = json.loads(line)
        step = Work(1, record["tokens"], record["step_s"], record["cpu_s"])
        steps.setdefault(record["loop"], []).append(step)
    return {
        loop: Work(*(sum(column) for column in zip(*of_loop[warm_up:], strict=True)))
        for loop, of_loop in steps.items()
    }
