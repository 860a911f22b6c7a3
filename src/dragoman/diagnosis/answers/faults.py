"""What went wrong, and what did it cost?

A failure that comes again at the same step has its cause there: saving more often or starting again
does not help against it.
"""

from collections import Counter
from collections.abc import Sequence

from dragoman.diagnosis.answers.fault_advice import advice_on, hosts_ever
from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.learning.repeated import repeated
from dragoman.diagnosis.phrasing import count, listed, percent, wall_time
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault, FaultHistory
from dragoman.diagnosis.speed.time_spent import cost_per_s

NOTABLE_LOSS_S = 1.0

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
        sentence=_sentence(run) + again,
        evidence=figures,
        advice=advice_on(run, same),
        plain=_plain(history, same),
    )


def _where(same: Sequence[Fault]) -> str:
    steps = sorted({fault.step for fault in same})
    if len(steps) == 1:
        return f"the same place, after step {steps[0]:,}"
    return f"about the same place, after steps {steps[0]:,} to {steps[-1]:,}"


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


def _sentence(run: RunFacts) -> str:
    history, attempts = run.faults, count(len(run.attempts), "attempt")
    if not history.faults:
        return f"The run took {attempts}, and nothing was lost between them."
    kinds = Counter(fault.kind for fault in history.faults)
    how_often = listed([f"{_WORDS[kind]} {_times(number)}" for kind, number in kinds.items()])
    worst = max(history.faults, key=lambda fault: fault.cost_s)
    what = f"{'The worst' if len(history.faults) > 1 else 'It'} was after step {worst.step:,}"
    if worst.cause == "error" and worst.host and len(hosts_ever(run)) > 1:
        what += f" on {worst.host}"
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
