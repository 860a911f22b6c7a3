"""The state of a run, as a value and in words."""

from dragoman.console import duration
from dragoman.diagnosis.commands import ends_at_once, train_command
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
        sentence=in_words(name, reason, step, planned, silent_s or 0.0, remaining_s),
        command=_resuming(run, name),
    )


def _resuming(run: RunFacts, name: StateName) -> str:
    has_stopped = name in ("broken off", "preempted", "failed")
    return train_command(run, {}) if has_stopped and not ends_at_once(run, run.config) else ""


def in_words(
    name: StateName,
    reason: str,
    step: int,
    planned_steps: int | None,
    silent_s: float,
    remaining_s: float | None,
) -> str:
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
                "nothing: killed, out of memory or a power cut. The same train command goes on "
                "from the last checkpoint."
            )
        case "preempted":
            return (
                f"It was stopped after {until}: {reason}. The same train command goes on from "
                "there."
            )
        case "failed":
            return (
                f"It failed after {until}: {reason}. Once the cause is gone, the same train "
                "command goes on from the last checkpoint."
            )
        case "finished":
            return f"It finished at step {count(step)}: {reason}."
