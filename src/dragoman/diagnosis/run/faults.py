"""The faults of a run: what interrupted it, what each fault cost and how the run went on.

The attempts of the timeline come in. Their steps are followed in order; where the run went back to
a checkpoint, the steps since then stand no longer, and are what the fault before has cost. The time
from the last work to the next start is lost as well. Steps are counted by their numbers, so that
torn lines change nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.telemetry.events import EndCause, Incident
from dragoman.telemetry.read.tables import Array

MEETS_AGAIN: frozenset[EndCause] = frozenset({"weights-differ", "out-of-memory", "diverged"})
"""Causes that are in the settings, in the weights or in a host, and stay there."""

FaultKind = Literal["broken off", "failed", "preempted", "rolled back", "not whole"]


@dataclass(frozen=True)
class Fault:
    kind: FaultKind
    """broken off: no rank recorded an end. rolled back: the attempt diverged and went back itself.
    not whole: the attempt ended well, and its newest checkpoint could not be used."""
    what: str
    at: float
    """Seconds since 1970."""
    attempt: int
    step: int
    """The last that was done."""
    rank: int | None = None
    """None: of no single rank, or nobody knows."""
    host: str = ""
    """Of that rank; empty: of no single host, or nobody knows."""
    cause: EndCause = ""
    """Of an attempt that recorded its end; else empty."""
    could_not_write: bool = False
    lost_steps: int = 0
    """Done after the checkpoint from which the run went on."""
    lost_s: float = 0.0
    """The time that these steps took, with what was done between them."""
    down_s: float = 0.0
    """From the last work to the next start; of a run that has not gone on, to its last event."""
    recovery: str = ""
    """How the run went on; empty: it has not yet, and the costs are what they will be at least."""

    @property
    def cost_s(self) -> float:
        return self.lost_s + self.down_s

    @property
    def comes_again(self) -> bool:
        """Whether the same command meets it again: something else has to be done about it first."""
        return self.could_not_write or self.cause in MEETS_AGAIN


@dataclass(frozen=True)
class FaultHistory:
    faults: tuple[Fault, ...]
    useful_steps: int
    """Steps that the model is made of."""
    all_s: float
    """From the first start to the end, without pauses after an attempt that ended well."""

    @property
    def unresumed(self) -> Fault | None:
        """The fault that the run has ended with; None: it goes on, or has ended well."""
        return self.faults[-1] if self.faults and not self.faults[-1].recovery else None

    @property
    def lost_steps(self) -> int:
        return sum(fault.lost_steps for fault in self.faults)

    @property
    def all_steps(self) -> int:
        return self.useful_steps + self.lost_steps

    @property
    def cost_s(self) -> float:
        return sum(fault.cost_s for fault in self.faults)

    @property
    def useful_s(self) -> float:
        """Neither lost nor down: steps that count, with evaluating, saving and starting."""
        return max(0.0, self.all_s - self.cost_s)

    @property
    def step_goodput(self) -> float:
        """Useful steps over all steps, 0 to 1."""
        return self.useful_steps / self.all_steps if self.all_steps else 1.0

    @property
    def time_goodput(self) -> float:
        """Useful seconds over all seconds, 0 to 1."""
        return self.useful_s / self.all_s if self.all_s else 1.0


def faults_of(attempts: Sequence[Attempt]) -> FaultHistory:
    faults: list[Fault] = []
    progress = _Progress(np.empty(0), np.empty(0), last_step=0)
    started_after_step = min((attempt.first_step for attempt in attempts), default=1) - 1
    before: Attempt | None = None
    for attempt in attempts:
        first, *rollbacks = _segments(attempt)
        if before and (fault := _between(before, attempt, progress)):
            faults.append(fault)
        progress = progress.followed_by(first)
        for segment in rollbacks:
            faults.append(_rollback(attempt, segment, progress))
            progress = progress.followed_by(segment)
            started_after_step = min(started_after_step, segment.after_step)
        # The file of another rank may hold more steps than that of the leading one.
        progress = progress._replace(last_step=max(progress.last_step, attempt.last_step))
        before = attempt
    useful_steps = progress.last_step - started_after_step
    if attempts and (fault := _unresumed(attempts[-1], progress)):
        faults.append(fault)
        useful_steps -= fault.lost_steps
    down_s = sum(fault.down_s for fault in faults if fault.kind != "rolled back")
    all_s = sum(attempt.worked_s for attempt in attempts) + down_s
    return FaultHistory(tuple(faults), useful_steps, all_s)


class _Segment(NamedTuple):
    """Steps of one attempt between two places where the run went back."""

    after_step: int
    """It goes on from there: later steps of the segments before it are lost."""
    steps: Array
    """Increasing; the first segment of an attempt begins with the step that it goes on from."""
    seconds: Array
    """Of each step, until the next one begins: evaluating and saving belong to the step before."""
    at: float
    """When its first step was done, or when the attempt started."""
    idle_s: float
    """Since the segment before it in the same attempt."""


class _Progress(NamedTuple):
    """What a run has done so far and has not gone back behind."""

    steps: Array
    """Increasing."""
    seconds: Array
    last_step: int

    def lost_by(self, after_step: int) -> tuple[int, float]:
        """Returns the steps and seconds that are lost by going back to a step."""
        lost_s = float(self.seconds[self._standing(after_step) :].sum())
        return max(0, self.last_step - after_step), max(0.0, lost_s)

    def followed_by(self, segment: _Segment) -> "_Progress":
        standing = self._standing(segment.after_step)
        return _Progress(
            steps=np.append(self.steps[:standing], segment.steps),
            seconds=np.append(self.seconds[:standing], segment.seconds),
            last_step=int(segment.steps[-1]),
        )

    def _standing(self, after_step: int) -> int:
        return int(np.searchsorted(self.steps, after_step, side="right"))


def _segments(attempt: Attempt) -> Iterator[_Segment]:
    """The start of the attempt stands before its steps, as the end of the one it goes on from."""
    is_own = attempt.steps["rank"] == attempt.leading_rank
    own = {name: attempt.steps[name][is_own] for name in ("step", "at", "monotonic_at", "step_s")}
    steps = np.append(attempt.first_step - 1, own["step"])
    at = np.append(attempt.started_at, own["at"])
    ended = np.append(attempt.started_monotonic_at, own["monotonic_at"])
    began = np.append(attempt.started_monotonic_at, own["monotonic_at"] - own["step_s"])
    ended[-1] = attempt.worked_monotonic_at
    goes_back = np.flatnonzero(np.diff(steps) <= 0) + 1
    for begin, end in pairwise([0, *goes_back.tolist(), len(steps)]):
        yield _Segment(
            after_step=int(steps[begin]) - 1 if begin else int(steps[0]),
            steps=steps[begin:end],
            seconds=np.diff(np.append(began[begin:end], ended[end - 1])),
            at=float(at[begin]),
            idle_s=max(0.0, float(began[begin] - ended[begin - 1])) if begin else 0.0,
        )


def _rollback(attempt: Attempt, segment: _Segment, progress: _Progress) -> Fault:
    to_step, last_step = segment.after_step, progress.last_step
    incident = _incident_of_rollback(attempt, last_step, to_step)
    lost_steps, lost_s = progress.lost_by(to_step)
    return Fault(
        kind="rolled back",
        what=incident.message if incident else "the attempt went back by itself",
        at=segment.at,
        attempt=attempt.number,
        step=last_step,
        lost_steps=lost_steps,
        lost_s=lost_s,
        down_s=segment.idle_s,
        recovery=f"the same attempt went on from step {to_step:,}",
    )


def _incident_of_rollback(attempt: Attempt, last_step: int, to_step: int) -> Incident | None:
    """Returns the incident of going back from one step to another. Lines of steps that were torn on
    either side make it look shorter than it was."""
    distances = {
        (incident.step - last_step) + (to_step - incident.rollback_step): incident
        for incident in attempt.incidents
        if incident.rollback_step is not None
        and incident.step >= last_step
        and incident.rollback_step <= to_step
    }
    return distances[min(distances)] if distances else None


def _between(before: Attempt, attempt: Attempt, progress: _Progress) -> Fault | None:
    """Returns the fault from which an attempt has recovered the run; None: it was only paused."""
    after_step, last_step = attempt.first_step - 1, progress.last_step
    lost_steps, lost_s = progress.lost_by(after_step)
    fault = _ending(before, last_step)
    if fault:
        fault = replace(fault, down_s=max(0.0, attempt.started_at - before.worked_at))
    elif lost_steps:
        what = "the newest checkpoint could not be used"
        fault = Fault("not whole", what, before.worked_at, before.number, last_step)
    else:
        return None
    recovery = _recovery(before, attempt)
    return replace(fault, lost_steps=lost_steps, lost_s=lost_s, recovery=recovery)


def _unresumed(last: Attempt, progress: _Progress) -> Fault | None:
    """Returns the fault that ended the run as far as it has come; None: it goes on or ended well.
    It will lose what it has not saved."""
    fault = _ending(last, progress.last_step)
    if last.state == "training" or fault is None:
        return None
    lost_steps, lost_s = progress.lost_by(min(last.saved_step, progress.last_step))
    down_s = max(0.0, last.last_event_at - last.worked_at)
    return replace(fault, lost_steps=lost_steps, lost_s=lost_s, down_s=down_s)


def _ending(attempt: Attempt, last_step: int) -> Fault | None:
    """Returns the fault with which an attempt ended, without its costs; None: it ended well."""
    states = [end.event.state for end in attempt.ends]
    if "finished" in states:
        return None
    if not attempt.ends:
        return Fault(
            kind="broken off",
            what="no rank recorded an end: killed, or the host was lost",
            at=attempt.last_event_at,
            attempt=attempt.number,
            step=last_step,
            rank=attempt.leading_rank if attempt.ranks == 1 else None,
            host=attempt.host_names[0] if len(attempt.host_names) == 1 else "",
        )
    kind: FaultKind = "failed" if "failed" in states else "preempted"
    at, writer, event = next(end for end in attempt.ends if end.event.state == kind)
    rank: int | None = event.culprit_rank
    host = event.culprit_host
    # Where none is named, it is who failed first. When several were asked to stop, or found that
    # they cannot go on together, it is nobody.
    fails_alone = kind == "failed" and event.cause not in MEETS_AGAIN
    if rank is None and (fails_alone or attempt.ranks == 1):
        rank, host = writer, attempt.hosts.get(writer, "")
    what = event.reason.partition("\n")[0]
    return Fault(
        *(kind, what, at, attempt.number, last_step, rank, host),
        cause=event.cause,
        could_not_write=event.could_not_write,
    )


def _recovery(before: Attempt, attempt: Attempt) -> str:
    ranks = f"{attempt.ranks} rank{'' if attempt.ranks == 1 else 's'}"
    if before.ranks != attempt.ranks:
        ranks += f" instead of {before.ranks}"
    where = f" on {', '.join(attempt.host_names)}" if attempt.hosts else ""
    step = attempt.first_step - 1
    how = f"went on from step {step:,}" if step else "started over"
    return f"attempt {attempt.number} {how} with {ranks}{where}"
