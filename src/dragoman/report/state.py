"""Where a run stands, in a value and in words."""

from dragoman.config import Config
from dragoman.console import duration
from dragoman.diagnosis.phrasing import count
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.report.content import RunState, StateName


def state_of(config: Config, run: RunFacts) -> RunState:
    planned = config.training.steps
    if not run.attempts:
        return _state("preparing", "", 0, planned, None, None)
    last = run.attempts[-1]
    remaining_s = None
    if last.state == "training" and planned is not None and len(run.steps):
        done = len(run.steps) + sum(attempt.lost_steps for attempt in run.attempts)
        remaining_s = max(0, planned - last.last_step) * run.wall_s / done
    silent_s = run.silent_s if last.state in ("training", "broken off") else None
    return _state(last.state, last.reason, last.last_step, planned, silent_s, remaining_s)


def _state(
    name: StateName,
    reason: str,
    step: int,
    planned_steps: int | None,
    silent_s: float | None,
    remaining_s: float | None,
) -> RunState:
    sentence = in_words(name, reason, step, planned_steps, silent_s or 0.0, remaining_s)
    return RunState(name, reason, step, planned_steps, silent_s, remaining_s, sentence)


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
