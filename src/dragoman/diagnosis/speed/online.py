"""The bottleneck while a run goes on: each step comes in, and a line goes out when it changes.

The verdict is that of `bottleneck`, over the newest steps. It must hold for a while before it is
told, so that a hiccup says nothing; then the step at which it began is looked for. Memory is
bounded and a step costs microseconds, since this runs between two steps of the training loop.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.steps import HANG_OVER_MEDIAN, HANG_S, StepSplit
from dragoman.diagnosis.speed.bottleneck import (
    ALWAYS_THE_SAME,
    NOBODY,
    Late,
    Link,
    Verdict,
    messages_of,
    shares_of,
    verdict_of,
)
from dragoman.diagnosis.speed.lateness import Piece, late_of, rank_name
from dragoman.diagnosis.speed.phases import change_place
from dragoman.diagnosis.speed.what_if import what_if
from dragoman.telemetry.events import StepDone

WINDOW_STEPS = 10
WINDOW_S = 10.0
"""The newest steps, at least so many and so long: both, so that neither fast steps nor slow ones
are judged by chance."""
MOST_STEPS = 2000
"""That are remembered, to find where a change began; fast steps make long windows."""
JUDGED_EVERY_S = 0.1
"""Of the steps' time: judging takes some 20 microseconds, too much for each of very fast steps."""
HOLDS_STEPS = 20
HOLDS_S = 30.0
"""A new verdict must hold for both before it is told."""

_COMPUTING = ("forward", "backward", "optimizer")


class Taken(NamedTuple):
    """What one step took, as far as rank 0 knows of all ranks."""

    step: int
    lateness_s: tuple[float, ...]
    """What each rank waited for the last one; empty: not known."""
    step_s: float
    compute_s: float
    network_s: float
    straggling_s: float
    data_s: float
    checkpoint_s: float
    rest_s: float
    backward_s: float
    sent_bytes: float


_SUMMED = Taken._fields[2:]


class LiveDiagnosis:
    """Of one attempt, on rank 0."""

    def __init__(self, hosts: Sequence[str], gradient_bytes: float) -> None:
        """`hosts`: of each rank."""
        has_several = len(set(hosts)) > 1
        self._called = list(hosts) if has_several else [rank_name(n) for n in range(len(hosts))]
        self._messages = messages_of(gradient_bytes)
        self._taken: deque[Taken] = deque(maxlen=MOST_STEPS)
        self._window: deque[Taken] = deque()
        self._sums = [0.0] * len(_SUMMED)
        self._is_first = True
        self._told: Verdict = "compute-bound"
        """What is the case as long as nothing is said."""
        self._new: Verdict = "compute-bound"
        self._new_steps = 0
        self._new_s = 0.0
        self._unjudged_steps = 0
        self._unjudged_s = 0.0

    def after(self, done: StepDone, waits_s: Sequence[float] = ()) -> str | None:
        """A line when the verdict has changed and the new one holds.

        `waits_s`: what each rank has waited in this step's communication. Without it nothing is
        said of the network.
        """
        if self._is_first:  # finds memory and makes connections
            self._is_first = False
            return None
        taken = _taken(done, waits_s)
        if self._window and self._is_hang(taken.step_s):
            return None
        self._taken.append(taken)
        self._add(taken)
        self._unjudged_steps += 1
        self._unjudged_s += taken.step_s
        if self._unjudged_s < JUDGED_EVERY_S or not self._has_enough():
            return None
        return self._judge()

    def _has_enough(self) -> bool:
        steps = len(self._window)
        return steps >= MOST_STEPS or (steps >= WINDOW_STEPS and self._sums[0] >= WINDOW_S)

    def _judge(self) -> str | None:
        split, link = self._mean()
        verdict = verdict_of(split, link, held=self._told)
        if verdict != self._new:
            self._new, self._new_steps, self._new_s = verdict, 0, 0.0
        self._new_steps += self._unjudged_steps
        self._new_s += self._unjudged_s
        self._unjudged_steps, self._unjudged_s = 0, 0.0
        is_held = self._new_steps >= HOLDS_STEPS and self._new_s >= HOLDS_S
        if verdict == self._told or not is_held:
            return None
        self._told = verdict
        return in_words(verdict, self._began_at(verdict), split, link, self._late())

    def _is_hang(self, step_s: float) -> bool:
        mean_s = self._sums[0] / len(self._window)
        return step_s > max(HANG_S, HANG_OVER_MEDIAN * mean_s)

    def _add(self, taken: Taken) -> None:
        window, sums = self._window, self._sums
        window.append(taken)
        for place, value in enumerate(taken[2:]):
            sums[place] += value
        while len(window) > WINDOW_STEPS and (
            sums[0] - window[0].step_s >= WINDOW_S or len(window) > MOST_STEPS
        ):
            for place, value in enumerate(window.popleft()[2:]):
                sums[place] -= value

    def _mean(self) -> tuple[StepSplit, Link]:
        mean = dict(zip(_SUMMED, (s / len(self._window) for s in self._sums), strict=True))
        sent = mean.pop("sent_bytes")
        split = StepSplit(
            **mean,
            late_data_s=0.0,
            small_message_s=mean["rest_s"],
            busy_s=mean["compute_s"],
        )
        return split, Link(self._messages, sent or math.nan)

    def _late(self) -> Late:
        """Whom the others wait for in the newest steps: asked for only when there is a line."""
        known = [taken.lateness_s for taken in self._window if taken.lateness_s]
        if not known:
            return NOBODY
        return late_of([Piece(self._called, range(len(self._called)), np.array(known).T)])

    def _began_at(self, verdict: Verdict) -> int:
        """The step at which what the verdict rests on changed most, of those remembered."""
        parts = {"straggler": "straggling_s", "input-bound": "data_s", "compute-bound": "step_s"}
        place = Taken._fields.index(parts.get(verdict, "network_s"))
        values = np.array([taken[place] for taken in self._taken])
        # A window that has tipped over is at least half new: the change is not far behind it.
        reach = 2 * (len(self._window) + self._new_steps)
        begin = max(0, len(values) - reach)
        if begin == 0 and not _changes(values):
            return self._taken[0].step
        return self._taken[change_place(values, begin, len(values))].step


def _changes(values: np.typing.NDArray[np.float64]) -> bool:
    """Whether the series has two levels, and not one from its beginning."""
    place = change_place(values, 0, len(values))
    before, after = values[:place], values[place:]
    if not len(before) or not len(after):
        return False
    spread = float(np.sqrt((before.var() * len(before) + after.var() * len(after)) / len(values)))
    return abs(float(after.mean() - before.mean())) > 3 * spread


def _taken(done: StepDone, waits_s: Sequence[float]) -> Taken:
    parts = done.parts_s
    network_s = min(waits_s, default=0.0)
    lateness_s = tuple(waited_s - network_s for waited_s in waits_s)
    return Taken(
        step=done.step,
        lateness_s=lateness_s,
        step_s=done.step_s,
        compute_s=math.fsum(parts.get(part, 0.0) for part in _COMPUTING),
        network_s=network_s,
        straggling_s=max(lateness_s, default=0.0),
        data_s=parts.get("data", 0.0),
        checkpoint_s=parts.get("checkpoint", 0.0),
        rest_s=parts.get("rest", 0.0),
        backward_s=parts.get("backward", 0.0),
        sent_bytes=done.traffic_bytes.get("sent", 0.0),
    )


def in_words(verdict: Verdict, since_step: int, split: StepSplit, link: Link, late: Late) -> str:
    """network-bound since step 400: 71 % of the step; bf16 on the wire would save about 32 %"""
    shares, if_s = shares_of(split), what_if(split, link)
    since = f"{verdict} since step {since_step:,}: "
    match verdict:
        case "network-bound":
            saving = percent(if_s.saving(if_s.half_bytes_s))
            words = f"{percent(shares.network)} of the step; bf16 on the wire would save about "
            return since + words + saving
        case "latency-bound":
            saving = percent(if_s.saving(if_s.double_updates_s))
            words = (
                f"{percent(shares.network)} of the step; updates twice as large would save about "
            )
            return since + words + saving
        case "straggler":
            whom = late.who if late.share >= ALWAYS_THE_SAME else "now one rank and now another"
            return since + f"{percent(shares.straggling)} of the step waits for {whom}"
        case "input-bound":
            return since + f"{percent(shares.data)} of the step waits for data"
    return since + f"computing takes {percent(shares.compute)} of the step again"
