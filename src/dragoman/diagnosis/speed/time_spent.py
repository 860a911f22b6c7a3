"""What the wall time of a run was spent on, and what it cost. Pure."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.silences import Silence
from dragoman.diagnosis.run.steps import StepParts

_WAITS = {
    "network_s": "the network",
    "straggling_s": "the slowest rank",
    "data_s": "data",
    "checkpoint_s": "a checkpoint's copy",
}


class TimeSpent(NamedTuple):
    """All but the first add up to `wall_s`."""

    wall_s: float
    """From the first start to the last sign, without pauses after an attempt that ended well."""
    training_s: float
    """Steps that the model is made of."""
    repeated_s: float
    """Steps that were lost."""
    evaluating_s: float
    starting_s: float
    """From each start to the first step."""
    down_s: float
    """Between an attempt that broke off and the next."""
    still_s: float
    """Hanging between steps, evaluations and saves."""
    other_s: float


class Waiting(NamedTuple):
    """What hosts were paid for while they waited, within attempts."""

    seconds: dict[str, float]
    """What they waited for -> seconds of the wall time, the longest first; without what was not
    recorded."""
    host_s: float
    """Of all hosts together."""
    repeated_host_s: float
    """Of steps that were lost, likewise."""

    @property
    def total_s(self) -> float:
        return math.fsum(self.seconds.values())


def waiting_of(
    attempts: Sequence[Attempt], parts: StepParts, silences: Sequence[Silence]
) -> Waiting:
    """`parts`: of the steps that count, as far as all ranks have recorded them."""
    seconds: dict[str, float] = defaultdict(float)
    host_s = repeated_host_s = 0.0
    for attempt in attempts:
        own = dict.fromkeys(_WAITS.values(), 0.0)
        rows = parts.attempt == attempt.number
        timed_s = float(parts["step_s"][rows].sum())
        training_s = float(attempt.steps["step_s"][~attempt.is_lost].sum())
        for column, what in _WAITS.items():
            if timed_s:
                own[what] = float(np.nansum(parts[column][rows])) / timed_s * training_s
        own["a run that hung"] = math.fsum(
            silence.seconds
            for silence in silences
            if silence.attempt == attempt.number and not silence.is_step
        )
        hosts = max(1, len(attempt.host_names))
        host_s += hosts * math.fsum(own.values())
        repeated_host_s += hosts * float(attempt.steps["step_s"][attempt.is_lost].sum())
        for what, waited_s in own.items():
            seconds[what] += waited_s
    longest_first = sorted(seconds.items(), key=lambda item: -item[1])
    return Waiting({what: s for what, s in longest_first if s > 0}, host_s, repeated_host_s)


def time_spent(attempts: Sequence[Attempt], still_s: float = 0.0) -> TimeSpent:
    """Returns the parts of the wall time; for `still_s` nothing went on."""
    alive_s = math.fsum(attempt.wall_s for attempt in attempts)
    down_s = math.fsum(
        max(0.0, after.started_at - before.ended_at)
        for before, after in pairwise(attempts)
        if before.state != "finished"
    )
    training_s = repeated_s = evaluating_s = 0.0
    for attempt in attempts:
        training_s += float(attempt.steps["step_s"][~attempt.is_lost].sum())
        repeated_s += float(attempt.steps["step_s"][attempt.is_lost].sum())
        evaluations = (*attempt.evaluations, *attempt.lost_evaluations)
        evaluating_s += math.fsum(evaluation.seconds for evaluation in evaluations)
    starting_s = math.fsum(_starting_s(attempt) for attempt in attempts)
    spent_s = training_s + repeated_s + evaluating_s + starting_s
    still_s = min(still_s, max(0.0, alive_s - spent_s))
    return TimeSpent(
        wall_s=alive_s + down_s,
        training_s=training_s,
        repeated_s=repeated_s,
        evaluating_s=evaluating_s,
        starting_s=starting_s,
        down_s=down_s,
        still_s=still_s,
        other_s=max(0.0, alive_s - spent_s - still_s),
    )


def _starting_s(attempt: Attempt) -> float:
    steps = attempt.steps
    if not len(steps):
        return attempt.wall_s
    first_began_at = float(steps["at"][0] - steps["step_s"][0])
    return min(max(0.0, first_began_at - attempt.started_at), attempt.wall_s)


def host_hours(attempts: Sequence[Attempt]) -> float:
    """Returns the hours of all hosts while attempts lasted: what passes between them is not
    recorded, so it is not counted."""
    return math.fsum(
        attempt.wall_s / 3600 * max(1, len(attempt.host_names)) for attempt in attempts
    )


def cost_of(attempts: Sequence[Attempt], host_per_hour: float) -> float:
    return host_hours(attempts) * host_per_hour


def cost_per_s(attempts: Sequence[Attempt], host_per_hour: float) -> float:
    """Returns the price of all hosts for a second, in the mean over the attempts."""
    alive_s = math.fsum(attempt.wall_s for attempt in attempts)
    return cost_of(attempts, host_per_hour) / alive_s if alive_s else 0.0
