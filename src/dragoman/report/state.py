"""The state of a run, as a value and in words."""

from dragoman.console import duration
from dragoman.diagnosis.answers.fault_advice import equal_until
from dragoman.diagnosis.commands import ends_at_once, other_launcher, train_command
from dragoman.diagnosis.phrasing import count
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.report.content import RunState, StateName


def state_of(run: RunFacts) -> RunState:
    planned = run.config.training.steps
    name: StateName = "preparing"
    reason, step, silent_s, remaining_s = "", 0, None, None
    if run.attempts:
        last = run.attempts[-1]
        name, reason, step = last.state, last.reason, last.last_step
        if name in ("training", "broken off"):
            silent_s = run.silent_s
        if name == "training" and planned is not None and len(run.steps):
            done = len(run.steps) + sum(attempt.lost_steps for attempt in run.attempts)
            remaining_s = max(0, planned - step) * run.wall_s / done
    return RunState(
        name=name,
        reason=reason,
        step=step,
        planned_steps=planned,
        silent_s=silent_s,
        remaining_s=remaining_s,
        sentence=in_words(
            name, reason, step, planned, silent_s or 0.0, remaining_s, _going_on(run)
        ),
        command=_resuming(run, name),
    )


def _resuming(run: RunFacts, name: StateName) -> str:
    """Returns the command that goes on; empty: none does, or another launcher has to be called."""
    last = run.faults.unresumed
    has_stopped = name in ("broken off", "preempted", "failed")
    if not has_stopped or other_launcher(run) or (last and last.comes_again):
        return ""
    return "" if ends_at_once(run, run.config) else train_command(run, {})


def _going_on(run: RunFacts) -> str:
    """Returns how a run that has stopped goes on, and what has to be done before."""
    last, launcher = run.faults.unresumed, other_launcher(run)
    how = "the same train command goes on"
    if launcher:
        how = f"the same job, started again with {launcher}, goes on"
    if last is None:
        return f"{how} from there"
    if last.could_not_write:
        return f"once there is room to write, {how} from the last checkpoint"
    match last.cause:
        case "weights-differ":
            return (
                f"checkpoints saved after step {equal_until(run, last):,} may hold wrong weights: "
                "it must not go on from them"
            )
        case "diverged":
            return "the same settings would diverge again"
        case "out-of-memory":
            return "the same settings would run out of memory again"
    if last.kind == "failed":
        return f"once the cause is gone, {how} from the last checkpoint"
    return f"{how} from {'there' if last.kind == 'preempted' else 'the last checkpoint'}"


def in_words(
    name: StateName,
    reason: str,
    step: int,
    planned_steps: int | None,
    silent_s: float,
    remaining_s: float | None,
    going_on: str = "the same train command goes on from the last checkpoint",
) -> str:
    """`going_on`: how a run that has stopped goes on, or why it should not."""
    then = f"{going_on[:1].upper()}{going_on[1:]}."
    reason = reason.partition("\n")[0]  # where each rank stood is further down
    until = f"step {count(step)}" + (f" of {count(planned_steps)}" if planned_steps else "")
    match name:
        case "preparing":
            return "No worker has reported yet: the run is preparing, or it ended before it began."
        case "training":
            left = ""
            if remaining_s is not None:
                left = f", about {duration(remaining_s)} left at the pace so far"
            return (
                f"It is training: {until} is done{left}. "
                f"The last sign of life is {duration(silent_s)} old."
            )
        case "broken off":
            return (
                f"It broke off after {until}, {duration(silent_s)} before this report, and said "
                f"nothing: killed, out of memory or a power cut. {then}"
            )
        case "preempted":
            return f"It was stopped after {until}: {reason}. {then}"
        case "failed":
            return f"It failed after {until}: {reason}. {then}"
        case "finished":
            return f"It finished at step {count(step)}: {reason}."
