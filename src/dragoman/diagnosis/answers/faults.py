"""What went wrong, and what did it cost?"""

from collections import Counter

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import count, listed, percent, wall_time
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault, FaultHistory
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.time_spent import cost_per_s

LOW_GOODPUT = 0.95
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
    is_low = history.time_goodput < LOW_GOODPUT
    return Finding(
        verdict=count(len(history.faults), "fault") if history.faults else "none",
        confidence="high",
        sentence=_sentence(history, len(run.attempts)),
        evidence=figures,
        advice=advice.on_faults(history) if history.faults and is_low else "",
    )


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
