"""What went wrong, and what did it cost?"""

from collections import Counter

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import count, listed, percent, wall_time
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault, FaultHistory
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.time_spent import cost_per_s

KEY = "faults"
QUESTION = "What went wrong, and what did it cost?"

LOW_GOODPUT = 0.95
WORTH_TELLING_S = 1.0

_WORDS = {
    "broken off": "broke off without a word",
    "failed": "failed",
    "preempted": "was asked to stop",
    "rolled back": "went back to a checkpoint by itself",
    "not whole": "could not use its newest checkpoint",
}


def finding(run: RunFacts) -> Finding | None:
    """None: nothing did, in a run of one attempt."""
    if not len(run.steps):
        return None
    found = run.faults
    if not found.faults and len(run.attempts) <= 1:
        return None
    figures = [
        Figure("faults", len(found.faults), ""),
        Figure("lost steps", found.lost_steps, "steps"),
        Figure("lost time", found.cost_s, "s", note="work that was lost, and downtime"),
        Figure("goodput of steps", found.step_goodput, "share"),
        Figure("goodput of time", found.time_goodput, "share"),
    ]
    prices = run.config.cost
    if prices.host_per_hour:
        cost = found.cost_s * cost_per_s(run.attempts, prices.host_per_hour)
        figures.append(Figure("cost of faults", cost, prices.currency))
    figures += [_figure(fault) for fault in found.faults]
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=count(len(found.faults), "fault") if found.faults else "none",
        confidence="high",
        sentence=_sentence(found, len(run.attempts)),
        evidence=figures,
        advice=_advice(found),
    )


def _figure(fault: Fault) -> Figure:
    what = fault.what.rstrip(".")
    went_on = fault.recovery or "the run has not gone on"
    note = f"{what}; {count(fault.lost_steps, 'step')} lost; {went_on}"
    return Figure(f"{fault.kind} after step {fault.step:,}", fault.cost_s, "s", note=note)


def _sentence(found: FaultHistory, attempts: int) -> str:
    if not found.faults:
        return f"The run took {count(attempts, 'attempt')}, and nothing was lost between them."
    kinds = Counter(fault.kind for fault in found.faults)
    how_often = listed([f"{_WORDS[kind]} {_times(number)}" for kind, number in kinds.items()])
    worst = max(found.faults, key=lambda fault: fault.cost_s)
    what = f"{'The worst' if len(found.faults) > 1 else 'It'} was after step {worst.step:,}"
    cost = "Nothing was lost."
    if found.lost_steps or found.cost_s >= WORTH_TELLING_S:
        lost_s, useful = wall_time(found.cost_s), percent(found.time_goodput)
        cost = f"No step was lost, but {lost_s}; {useful} of the time was useful."
        if found.lost_steps:
            steps = count(found.lost_steps, "step")
            cost = f"{steps} and {lost_s} were lost; {useful} of the time was useful."
    return f"The run {how_often}. {cost} {what}: {worst.what.rstrip('.')}."


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _advice(found: FaultHistory) -> str:
    if found.time_goodput >= LOW_GOODPUT or not found.faults:
        return ""
    return advice.on_faults(found)
