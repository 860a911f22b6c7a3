"""What broke a run, what each fault cost and how it was got over. Pure, without torch.

The recorded events of a run come in. They are walked through in order, and what is done grows step
by step; where the run went back to a checkpoint, the steps since then are taken off again, and are
what the fault before it has cost. The time between the last sign of work and the next start is
lost as well. Steps are counted by their numbers, so that torn lines change nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from dragoman.console import duration
from dragoman.diagnosis.run.steps_done import StepsDone
from dragoman.diagnosis.run.told_attempts import ToldAttempt, attempts_in
from dragoman.telemetry.events import CheckpointSaved, Evaluated, Incident, StepDone
from dragoman.telemetry.read.events import Recorded

Kind = Literal["broken off", "failed", "preempted", "rolled back", "not whole"]


@dataclass(frozen=True)
class Fault:
    kind: Kind
    """broken off: it ended without a word. rolled back: numbers went wrong, and the attempt itself
    went back. not whole: it ended well, and what it had saved last could not be used."""
    what: str
    at: float
    """Seconds since 1970."""
    attempt: int
    step: int
    """The last that was done."""
    rank: int | None
    """None: of none alone, or nobody knows."""
    host: str
    """Empty: of none alone, or nobody knows."""
    lost_steps: int = 0
    """Done after the checkpoint from which the run went on."""
    lost_s: float = 0.0
    """The time that these steps took, with what was done between them."""
    down_s: float = 0.0
    """From the last sign of work to the next start; of a run that has not gone on, to its end."""
    recovery: str = ""
    """How the run went on; empty: it has not yet, and the costs are what they will be at least."""

    @property
    def cost_s(self) -> float:
        return self.lost_s + self.down_s


@dataclass(frozen=True)
class FaultHistory:
    faults: tuple[Fault, ...]
    useful_steps: int
    """That the model is made of."""
    all_steps: int
    useful_s: float
    """Neither lost nor down: steps that count, with evaluating, saving and starting."""
    all_s: float
    """From the first start to the end, without pauses after an attempt that ended well."""

    @property
    def lost_steps(self) -> int:
        return sum(fault.lost_steps for fault in self.faults)

    @property
    def cost_s(self) -> float:
        return sum(fault.cost_s for fault in self.faults)

    @property
    def step_goodput(self) -> float:
        """Useful steps over all steps, 0 to 1."""
        return self.useful_steps / self.all_steps if self.all_steps else 1.0

    @property
    def time_goodput(self) -> float:
        """Useful seconds over all seconds, 0 to 1."""
        return self.useful_s / self.all_s if self.all_s else 1.0


def faults_of(events: Iterable[Recorded], is_running: bool = False) -> FaultHistory:
    """`is_running`: the last attempt goes on at this moment, so that its silence means nothing."""
    walk = _Walk()
    for attempt in attempts_in(events):
        walk.begin(attempt)
        walk.follow(attempt)
        walk.end(attempt)
    walk.close(is_running)
    down_s = sum(fault.down_s for fault in walk.faults if fault.kind != "rolled back")
    all_s = walk.alive_s + down_s
    return FaultHistory(
        faults=tuple(walk.faults),
        useful_steps=walk.done.steps,
        all_steps=walk.done.steps + sum(fault.lost_steps for fault in walk.faults),
        useful_s=max(0.0, all_s - sum(fault.cost_s for fault in walk.faults)),
        all_s=all_s,
    )


def described(history: FaultHistory) -> list[str]:
    """In words: first all together, then a line for each."""
    count = len(history.faults)
    lost = f", {history.lost_steps:,} steps and {duration(history.cost_s)} lost" if count else ""
    steps, seconds = history.step_goodput, history.time_goodput
    lines = [
        f"{count} fault{'' if count == 1 else 's'}{lost}; "
        f"goodput {steps:.1%} of the steps, {seconds:.1%} of the time"
    ]
    for fault in history.faults:
        at = datetime.fromtimestamp(fault.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        lines.append(
            f"{at}, attempt {fault.attempt}, step {fault.step:,}: {fault.kind}: {fault.what}; "
            f"lost {fault.lost_steps:,} steps and {duration(fault.lost_s)}, down for "
            f"{duration(fault.down_s)}; {fault.recovery or 'the run has not gone on yet'}"
        )
    return lines


class _Walk:
    def __init__(self) -> None:
        self.done = StepsDone()
        self.faults: list[Fault] = []
        self.alive_s = 0.0
        """Of attempts, up to their last sign of work."""
        self._open: Fault | None = None
        """What ended the last attempt, until it is known how the run went on."""
        self._before: ToldAttempt | None = None
        self._worked_at = 0.0
        """Last sign of work, on the wall clock."""
        self._saved_step = 0

    def begin(self, attempt: ToldAttempt) -> None:
        first_step = attempt.first_step(self.done.last)
        fault, self._open = self._open, None
        last_before = self.done.last if self.done.first is not None else first_step - 1
        lost_steps, lost_s = self.done.go_back_to(first_step - 1)
        if fault is None and self._before and lost_steps:
            fault = Fault(
                kind="not whole",
                what="the newest checkpoint could not be used",
                at=self._worked_at,
                attempt=self._before.number,
                step=last_before,
                rank=None,
                host="",
            )
        elif fault:
            fault = replace(fault, down_s=max(0.0, attempt.begun_at - self._worked_at))
        if fault:
            self.faults.append(
                replace(
                    fault,
                    lost_steps=lost_steps,
                    lost_s=lost_s,
                    recovery=_recovery(attempt, self._before, first_step - 1),
                )
            )
        self._saved_step = first_step - 1
        self._worked_at = attempt.begun_at

    def follow(self, attempt: ToldAttempt) -> None:
        begun_at = worked_at = stepped_at = attempt.leading[0].monotonic_at
        trouble = ""
        for wall_at, monotonic_at, event in attempt.leading:
            match event:
                case StepDone(step=step, step_s=step_s):
                    between_s = monotonic_at - step_s - stepped_at
                    if step <= self.done.last:
                        self._roll_back(attempt, wall_at, step - 1, between_s, trouble)
                    else:
                        self.done.add(self.done.last, between_s)
                    self.done.add(step, step_s)
                    stepped_at = monotonic_at
                case CheckpointSaved(step=step):
                    self._saved_step = step
                case Incident(message=trouble):
                    continue
                case Evaluated():
                    pass
                case _:
                    continue
            worked_at, self._worked_at = monotonic_at, wall_at
        self.done.add(self.done.last, worked_at - stepped_at)
        if attempt.last_step is not None:  # another rank's file may hold more than the leading one
            self.done.add(max(self.done.last, attempt.last_step), 0.0)
        self.alive_s += worked_at - begun_at

    def end(self, attempt: ToldAttempt) -> None:
        self._before = attempt
        self._open = _ending(attempt, self.done.last)

    def close(self, is_running: bool) -> None:
        if self._open is None or self._before is None:
            return
        if is_running and not self._before.ends:
            return
        lost_steps, lost_s = self.done.go_back_to(min(self._saved_step, self.done.last))
        down_s = max(0.0, self._before.last_sign_at - self._worked_at)
        self.faults.append(replace(self._open, lost_steps=lost_steps, lost_s=lost_s, down_s=down_s))

    def _roll_back(
        self, attempt: ToldAttempt, at: float, to_step: int, down_s: float, trouble: str
    ) -> None:
        last = self.done.last
        lost_steps, lost_s = self.done.go_back_to(to_step)
        self.faults.append(
            Fault(
                kind="rolled back",
                what=trouble or "the attempt went back by itself",
                at=at,
                attempt=attempt.number,
                step=last,
                rank=None,
                host="",
                lost_steps=lost_steps,
                lost_s=lost_s,
                down_s=max(0.0, down_s),
                recovery=f"the same attempt went on from step {to_step:,}",
            )
        )
        self._saved_step = min(self._saved_step, to_step)


def _ending(attempt: ToldAttempt, last_step: int) -> Fault | None:
    """The fault with which an attempt ended, without its costs; None: it ended well."""
    states = [end.event.state for end in attempt.ends]
    if "finished" in states:
        return None
    number = attempt.number
    if not attempt.ends:
        what = "no rank said a word: killed, or the host was lost"
        alone = attempt.ranks <= 1
        rank = min(attempt.starts, default=None) if alone else None
        host = attempt.hosts[0] if len(attempt.hosts) == 1 else ""
        return Fault("broken off", what, attempt.last_sign_at, number, last_step, rank, host)
    is_failed = "failed" in states
    at, writer, event = next(
        end for end in attempt.ends if not is_failed or end.event.state == "failed"
    )
    what = event.reason.partition("\n")[0]
    kind: Kind = "failed" if is_failed else "preempted"
    if event.culprit_rank is not None:
        culprit = event.culprit_rank, event.culprit_host
        return Fault(kind, what, at, number, last_step, *culprit)
    if not is_failed and attempt.ranks > 1:  # all were asked to stop
        return Fault(kind, what, at, number, last_step, None, "")
    return Fault(kind, what, at, number, last_step, writer, attempt.host_of(writer))


def _recovery(attempt: ToldAttempt, before: ToldAttempt | None, step: int) -> str:
    ranks = f"{attempt.ranks} rank{'' if attempt.ranks == 1 else 's'}"
    if before and before.ranks != attempt.ranks:
        ranks += f" instead of {before.ranks}"
    where = f" on {', '.join(attempt.hosts)}" if attempt.hosts else ""
    how = f"went on from step {step:,}" if step else "started over"
    return f"attempt {attempt.number} {how} with {ranks}{where}"
