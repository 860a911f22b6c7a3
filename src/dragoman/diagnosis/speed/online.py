"""The bottleneck while a run goes on: each step comes in, and a line goes out when it changes.

Steps are split, and verdicts given, by the functions that make a report, over the newest steps. A
new verdict must hold for a while before it is logged, so that a hiccup logs nothing; then the step
at which it began is looked for. This runs between two steps of the training loop: memory is
bounded, and most steps are only put into a list.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from dragoman.config import Config
from dragoman.diagnosis.commands import setting_line
from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.steps import (
    HANG_S,
    StepParts,
    StepSplit,
    is_hang,
    split_steps,
)
from dragoman.diagnosis.speed.bottleneck import Late, Link, Verdict, shares_of
from dragoman.diagnosis.speed.lateness import latest, rank_name
from dragoman.diagnosis.speed.phases import change_point, evidence_of, verdict_over
from dragoman.diagnosis.speed.sync_modes import modes_for
from dragoman.diagnosis.speed.what_if import projected_steps
from dragoman.distributed.ring_bytes import messages_of
from dragoman.model.size import FP32_BYTES
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.read.tables import Array
from dragoman.training.observer import RankParts

WINDOW_STEPS = 10
WINDOW_S = 10.0
"""The newest steps, at least so many and so long: both, so that neither fast steps nor slow ones
are judged by chance."""
MOST_STEPS = 4000
"""That are remembered, to find where a change began; fast steps make long windows."""
JUDGED_EVERY_S = 5.0
"""Of the steps' time: judging takes about a millisecond, a few with 64 ranks, and half a window is
soon enough."""
HOLDS_STEPS = 20
HOLDS_S = 30.0
"""A new verdict must hold for both before it is logged."""


class LiveDiagnosis:
    """Watches one attempt, on rank 0."""

    def __init__(self, config: Config, hosts: Sequence[str], gradient_bytes: float) -> None:
        """`hosts` are those of each rank."""
        self._config, self._hosts = config, hosts
        self._parameters = round(gradient_bytes / FP32_BYTES)
        has_several = len(set(hosts)) > 1
        self.names = {
            (0, rank): host if has_several else rank_name(rank) for rank, host in enumerate(hosts)
        }
        self._link = Link(messages_of(gradient_bytes))
        self._is_first = True
        self._unsplit: deque[tuple[int, Sequence[RankParts]]] = deque(maxlen=MOST_STEPS)
        self._unsplit_s = 0.0
        self._numbers = np.empty(0, dtype=np.int64)
        self._columns = np.empty((len(StepSplit._fields), 0))
        self._waits_s = np.empty((len(hosts), 0))
        self.verdict: Verdict = "compute-bound"
        """The one that holds: the last one logged, or what is assumed before."""
        self._new: Verdict = "compute-bound"
        self._new_steps = 0
        self._new_s = 0.0

    @property
    def steps(self) -> StepParts:
        """The newest ones as in a report, but for the last one and those since it was judged."""
        none = np.zeros(len(self._numbers), dtype=np.int64)
        return StepParts(
            attempt=none,
            step=self._numbers,
            at=none,
            columns=dict(zip(StepSplit._fields, self._columns, strict=True)),
            waits_s=dict(enumerate(self._waits_s)),
            is_first=none > 0,
            missing_ranks={},
        )

    def after(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        """Returns a line when the verdict has changed and the new one holds."""
        if self._is_first:  # it allocates memory and makes connections
            self._is_first = False
            return None
        if done.step_s > HANG_S and is_hang(np.append(self.steps["step_s"], done.step_s))[-1]:
            return None
        self._unsplit.append((done.step, parts_by_rank))
        self._unsplit_s += done.step_s
        self._new_steps += 1
        self._new_s += done.step_s
        return self._judge() if self._unsplit_s >= JUDGED_EVERY_S else None

    def _judge(self) -> str | None:
        new_steps, new_s = len(self._unsplit), self._unsplit_s
        self._split_new_steps()
        steps = self.steps
        window = window_of(steps)
        if window is None:
            return None
        verdict = verdict_over(steps, window, self._link, self.names, held=self.verdict)
        if verdict != self._new:
            self._new, self._new_steps, self._new_s = verdict, new_steps, new_s
        is_held = self._new_steps >= HOLDS_STEPS and self._new_s >= HOLDS_S
        if verdict == self.verdict or not is_held:
            return None
        self.verdict = verdict
        since_step = _began_at(verdict, steps, len(window) + self._new_steps)
        late = latest(steps, self.names, window)
        split = steps.mean(window)
        return in_words(verdict, since_step, split, self._less_network(split), late)

    def _less_network(self, split: StepSplit) -> str:
        """Returns what would be waited for less with, as the report advises; empty: auto looks for
        it itself."""
        if self._config.sync.mode == "auto":
            return ""
        modes = modes_for(self._config, self._parameters, self._hosts, split, self._link)
        if modes and modes.chosen:
            what = ", ".join(setting_line(*setting) for setting in modes.settings.items())
            saving = 1 - 1 / modes.speed_up(modes.chosen)
            return f"a new run with {what} would save about {percent(saving)}"
        projected = projected_steps(split, self._link)
        saving = projected.saving(projected.double_updates_s)
        return f"updates twice as large would save about {percent(saving)}"

    def _split_new_steps(self) -> None:
        numbers, parts = zip(*self._unsplit, strict=True)
        # How the newest one ends shows in the one after it.
        self._unsplit = deque([self._unsplit[-1]], MOST_STEPS)
        self._unsplit_s = 0.0
        flat: Iterable[float | None] = chain.from_iterable(chain.from_iterable(parts))
        if parts[0][0].communication_s is None:  # on all ranks or on none
            flat = (math.nan if part_s is None else part_s for part_s in flat)
        shape = len(parts), len(self._waits_s), len(RankParts._fields)
        # Ten times as fast as np.array of what is nested.
        parts_s = np.fromiter(flat, dtype=float).reshape(shape).transpose(2, 1, 0)
        named = {
            field.removesuffix("_s"): part_s
            for field, part_s in zip(RankParts._fields, parts_s, strict=True)
        }
        columns, waits_s = split_steps(np.array(numbers), named, named["ready"])
        new = np.stack([columns[name] for name in StepSplit._fields])[:, :-1]
        waits_s = waits_s[:, :-1]
        self._numbers = np.append(self._numbers, numbers[:-1])[-MOST_STEPS:]
        self._columns = np.append(self._columns, new, axis=1)[:, -MOST_STEPS:]
        self._waits_s = np.append(self._waits_s, waits_s, axis=1)[:, -MOST_STEPS:]


def window_of(steps: StepParts) -> Array | None:
    """Returns the rows of the newest steps that are enough to be judged by; None: they are not."""
    step_s = steps["step_s"]
    needed = max(WINDOW_STEPS, 1 + int(np.searchsorted(np.cumsum(step_s[::-1]), WINDOW_S)))
    if len(step_s) < min(needed, MOST_STEPS):
        return None
    return np.arange(max(0, len(step_s) - needed), len(step_s))


def _began_at(verdict: Verdict, steps: StepParts, new_steps: int) -> int:
    """Returns the step at which what the verdict rests on changed most, of those remembered."""
    values = evidence_of(verdict, steps)
    # A window that has tipped over is at least half new: the change is not far behind it.
    begin = max(0, len(values) - 2 * new_steps)
    place = 0
    if begin > 0 or _has_two_levels(values):
        place = change_point(values, begin, len(values))
    return int(steps.step[place])


def _has_two_levels(values: Array) -> bool:
    place = change_point(values, 0, len(values))
    before, after = values[:place], values[place:]
    if not len(before) or not len(after):
        return False
    spread = float(np.sqrt((before.var() * len(before) + after.var() * len(after)) / len(values)))
    return abs(float(after.mean() - before.mean())) > 3 * spread


def in_words(
    verdict: Verdict, since_step: int, split: StepSplit, less_network: str, late: Late
) -> str:
    """network-bound since step 400: 71 % of the step; a new run with sync.mode = ... would save ...

    `less_network`: what would help against the network, if anything.
    """
    shares = shares_of(split)
    match verdict:
        case "network-bound" | "latency-bound":
            words = f"{percent(shares.network)} of the step"
            words += f"; {less_network}" if less_network else ""
        case "straggler":
            whom = late.who if late.is_always_the_same else "now one rank and now another"
            words = f"{percent(shares.straggling)} of the step waits for {whom}"
        case "input-bound":
            words = f"{percent(shares.input)} of the step waits for data"
        case "compute-bound":
            words = f"computing takes {percent(shares.compute)} of the step again"
    return f"{verdict} since step {since_step:,}: {words}"
