"""What went wrong, and what did it cost?

A failure that comes again at the same step has its cause there: saving more often or starting again
does not help against it.
"""

import shlex
from collections import Counter
from collections.abc import Sequence

from dragoman.diagnosis.commands import setting_line, train_command
from dragoman.diagnosis.findings import Advice, Figure, Finding
from dragoman.diagnosis.learning.remedies import lower_the_rate
from dragoman.diagnosis.learning.repeated import repeated
from dragoman.diagnosis.phrasing import count, listed, percent, wall_time
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault, FaultHistory
from dragoman.diagnosis.speed.time_spent import cost_per_s

LOW_GOODPUT = 0.95
NOTABLE_LOSS_S = 1.0
WORTH_S = 60.0
"""Faults that cost less are not worth any advice."""
LEAST_STEPS = 20
"""Nor are those of a run that has hardly begun."""
MORE_OFTEN = 4
"""How many times as often to save, where much work is lost."""

_WORDS = {
    "broken off": "ended without a reason",
    "failed": "failed",
    "preempted": "was asked to stop",
    "rolled back": "went back to a checkpoint by itself",
    "not whole": "could not use its newest checkpoint",
}


def answer(run: RunFacts) -> Finding | None:
    """Returns None for a run of one attempt in which nothing went wrong."""
    if not len(run.steps):
        return None
    history = run.faults
    if not history.faults and len(run.attempts) <= 1:
        return None
    figures = [
        Figure("faults", len(history.faults), ""),
        Figure("lost steps", history.lost_steps, "steps"),
        Figure("lost time", history.cost_s, "s", note="work that was lost, and downtime"),
        Figure("goodput of steps", history.step_goodput, "share"),
        Figure("goodput of time", history.time_goodput, "share"),
    ]
    prices = run.config.cost
    if prices.host_per_hour:
        cost = history.cost_s * cost_per_s(run.attempts, prices.host_per_hour)
        figures.append(Figure("cost of faults", cost, prices.currency))
    figures += [_figure(fault) for fault in history.faults]
    same = repeated(history.faults)
    again = ""
    if same:
        again = (
            f" The same failure came {_times(len(same))} at {_where(same)}: its cause is there, "
            "and a run that starts again will meet it again."
        )
    return Finding(
        verdict=count(len(history.faults), "fault") if history.faults else "none",
        confidence="high",
        sentence=_sentence(history, len(run.attempts)) + again,
        evidence=figures,
        advice=_on_repeated(run, same) if same else _advice(run, history),
        plain=_plain(history, same),
    )


def _where(same: Sequence[Fault]) -> str:
    steps = sorted({fault.step for fault in same})
    if len(steps) == 1:
        return f"the same place, after step {steps[0]:,}"
    return f"about the same place, after steps {steps[0]:,} to {steps[-1]:,}"


def _on_repeated(run: RunFacts, same: Sequence[Fault]) -> list[Advice]:
    """Returns how to find the cause of a failure that comes again and again."""
    last = same[-1]
    attempts = {attempt.number: attempt for attempt in run.attempts}
    causes = {end.event.cause for end in attempts[last.attempt].ends}
    if last.kind == "broken off":
        return [_kernel_log(attempts[last.attempt].host_names), _other_order(run, last)]
    if last.kind == "rolled back" or "diverged" in causes:
        return [lower_the_rate(run, f"the loss runs away after step {last.step:,} each time")]
    if "out-of-memory" in causes:
        half = max(1, run.config.training.micro_batch_limit // 2)
        return [
            Advice(
                "Start a new run with smaller micro-batches: the same large batch takes all memory "
                "each time.",
                train_command(run, {"training.micro_batch_tokens": half}, new_run=True),
            )
        ]
    events = shlex.quote(str(run.record.directory.events))
    read = Advice(
        "Read what the failed attempts recorded, in full.",
        f"grep -rhE 'attempt-ended.*failed' {events} | tail -n {len(same)}",
    )
    return [read, _other_order(run, last)]


def _kernel_log(hosts: Sequence[str]) -> Advice:
    """Returns how to see whether the system has killed a process of the run."""
    command = "journalctl -k --no-pager | grep -iE 'out of memory|killed process' | tail"
    if len(hosts) > 1:
        command = "; ".join(f"ssh {shlex.quote(host)} {shlex.quote(command)}" for host in hosts)
    return Advice(
        "See whether the system killed the process, for want of memory or for another reason.",
        command,
    )


def _other_order(run: RunFacts, fault: Fault) -> Advice:
    seed = run.config.training.seed + 1
    return Advice(
        f"Try another order of the training pairs in a new run: if it passes step {fault.step:,}, "
        "the pairs of that step are the cause, otherwise the machine or the program is.",
        train_command(run, {"training.seed": seed}, new_run=True),
    )


def _advice(run: RunFacts, history: FaultHistory) -> list[Advice]:
    """Returns what would have made the faults cheaper; empty: they cost little, or it is too early
    to say."""
    is_cheap = history.time_goodput >= LOW_GOODPUT or history.cost_s < WORTH_S
    if not history.faults or is_cheap or history.all_steps < LEAST_STEPS:
        return []
    down_s = sum(fault.down_s for fault in history.faults)
    if down_s > history.cost_s / 2:
        # A run that has ended well, or still goes on, is not to be started again.
        is_over = run.attempts[-1].state in ("finished", "training")
        which = "the next run" if is_over else "the run"
        return [
            Advice(
                f"Let the shell start {which} again when it breaks off: most was lost to waiting "
                "for that.",
                f"until {train_command(run, {}, new_run=is_over)}; do sleep 30; done",
                down_s,
            )
        ]
    settings = run.config.checkpoints
    if settings.every_steps:
        line = setting_line("checkpoints.every_steps", max(1, settings.every_steps // MORE_OFTEN))
    else:
        line = setting_line("checkpoints.lost_minutes", settings.lost_minutes / MORE_OFTEN)
    saves_s = (history.cost_s - down_s) * (1 - 1 / MORE_OFTEN)
    return [Advice("Save more often: most was lost to steps done again.", line, saves_s)]


def _plain(history: FaultHistory, same: Sequence[Fault]) -> str:
    if same:
        return (
            f"The run failed {_times(len(same))} in the same place, so something there is broken."
        )
    if not history.faults:
        return "Nothing went wrong: the run was only stopped and continued."
    lost = 1 - history.time_goodput
    stops = f"The run was interrupted {_times(len(history.faults))}"
    if history.cost_s < NOTABLE_LOSS_S:
        return f"{stops}, and nothing was lost."
    return f"{stops}, which cost {percent(lost)} of its time."


def _figure(fault: Fault) -> Figure:
    what = fault.what.rstrip(".")
    went_on = fault.recovery or "the run has not gone on"
    note = f"{what}; {count(fault.lost_steps, 'step')} lost; {went_on}"
    return Figure(f"{fault.kind} after step {fault.step:,}", fault.cost_s, "s", note=note)


def _sentence(history: FaultHistory, attempts: int) -> str:
    if not history.faults:
        return f"The run took {count(attempts, 'attempt')}, and nothing was lost between them."
    kinds = Counter(fault.kind for fault in history.faults)
    how_often = listed([f"{_WORDS[kind]} {_times(number)}" for kind, number in kinds.items()])
    worst = max(history.faults, key=lambda fault: fault.cost_s)
    what = f"{'The worst' if len(history.faults) > 1 else 'It'} was after step {worst.step:,}"
    cost = "Nothing was lost."
    if history.lost_steps or history.cost_s >= NOTABLE_LOSS_S:
        lost_s, useful = wall_time(history.cost_s), percent(history.time_goodput)
        cost = f"No step was lost, but {lost_s}; {useful} of the time was useful."
        if history.lost_steps:
            steps = count(history.lost_steps, "step")
            cost = f"{steps} and {lost_s} were lost; {useful} of the time was useful."
    return f"The run {how_often}. {cost} {what}: {worst.what.rstrip('.')}."


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
