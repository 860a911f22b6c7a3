"""How long did the training run take, and what did it spend that time on?"""

import math
from collections.abc import Sequence

import numpy as np

from dragoman.config import CostSettings
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed, percent, wall_time
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.diagnosis.run.steps import StepParts
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.time_spent import TimeSpent, cost_of, host_hours, time_spent

KEY = "duration"
QUESTION = "How long did the training run take?"

WORTH_TELLING = 0.01
"""Of the whole: smaller parts stay in the figures."""
LOSES_MUCH = 0.05
EVALUATES_MUCH = 0.20
STARTS_MUCH = 0.10

EVALUATE_LESS = (
    "Evaluate less often (evaluation.every_steps) or translate fewer sentences each time "
    "(evaluation.translate_sentences)."
)
START_LESS = "Starting took a large part of it; fewer and longer attempts would spread that better."


def answer(run: RunFacts) -> Finding:
    if not len(run.steps):
        return unknown(KEY, QUESTION, "no step has been recorded")
    silences = run.silences
    still_s = math.fsum(silence.seconds for silence in silences if not silence.is_step)
    spent = time_spent(run.attempts, still_s)
    faults = run.faults
    is_running = run.attempts[-1].state == "training"
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=wall_time(spent.wall_s),
        confidence="high",
        sentence=_sentence(run, spent, faults, is_running),
        evidence=[
            Figure("wall time", spent.wall_s, "s"),
            Figure("training", spent.training_s, "s", note="steps that the model is made of"),
            *_waiting(run.step_parts, spent.training_s),
            Figure("evaluating", spent.evaluating_s, "s"),
            Figure("writing checkpoints", _saving_s(run), "s", note="beside the steps"),
            Figure("starting", spent.starting_s, "s"),
            Figure("steps done again", spent.repeated_s, "s"),
            Figure("down between attempts", spent.down_s, "s"),
            Figure("standing still", spent.still_s, "s"),
            Figure("other", spent.other_s, "s"),
            Figure("lost to faults", faults.cost_s, "s", note="work that was lost, and downtime"),
            *_costs(run.attempts, run.config.cost),
            *(_attempt_figure(attempt) for attempt in run.attempts),
        ],
        advice=_advice(spent, faults),
    )


def _saving_s(run: RunFacts) -> float:
    return math.fsum(save.seconds for attempt in run.attempts for save in attempt.saves)


def _waiting(anatomy: StepParts, training_s: float) -> list[Figure]:
    """Parts of all steps together, as far as all ranks have recorded them."""
    total_s = float(anatomy["step_s"].sum())
    if not total_s:
        return []
    named = {
        "computing": "compute_s",
        "waiting for the network": "network_s",
        "waiting for the slowest rank": "straggling_s",
        "waiting for data": "data_s",
        "waiting for a checkpoint's copy": "checkpoint_s",
    }
    return [
        Figure(name, float(anatomy[column].sum()) / total_s * training_s, "s", note="of training")
        for name, column in named.items()
        if not np.isnan(anatomy[column]).any()
    ]


def _costs(attempts: Sequence[Attempt], prices: CostSettings) -> list[Figure]:
    if not prices.host_per_hour:
        return []
    price = f"{prices.host_per_hour:g} {prices.currency} for a host and hour"
    note = f"{price}, while attempts lasted" if len(attempts) > 1 else price
    return [
        Figure("cost", cost_of(attempts, prices.host_per_hour), prices.currency, note=note),
        Figure("host hours", host_hours(attempts), "h"),
    ]


def _attempt_figure(attempt: Attempt) -> Figure:
    steps = "no step"
    if len(attempt.steps):
        steps = f"steps {attempt.first_step:,} to {attempt.last_step:,}"
    where = f"{count(attempt.ranks, 'rank')} on {count(max(1, len(attempt.host_names)), 'host')}"
    ending = attempt.state + (f": {attempt.reason}" if attempt.reason else "")
    return Figure(
        f"attempt {attempt.number}", attempt.wall_s, "s", note=f"{steps}, {where}; {ending}"
    )


def _sentence(run: RunFacts, spent: TimeSpent, faults: FaultHistory, is_running: bool) -> str:
    took = "The run has taken" if is_running else "The run took"
    so_far = " so far" if is_running else ""
    attempts = len(run.attempts)
    within = f" in {attempts} attempts" if attempts > 1 else ""
    parts = [
        ("went to the steps of the model", spent.training_s),
        ("to steps that had to be done again", spent.repeated_s),
        ("to evaluating", spent.evaluating_s),
        ("to starting", spent.starting_s),
        ("to being down between attempts", spent.down_s),
        ("to standing still", spent.still_s),
        ("to all else", spent.other_s),
    ]
    told = [
        f"{percent(spent_s / spent.wall_s)} {what}"
        for what, spent_s in parts
        if spent.wall_s and spent_s >= WORTH_TELLING * spent.wall_s
    ]
    sentence = f"{took} {wall_time(spent.wall_s)}{so_far}{within}: {listed(told)}."
    if not told:
        sentence = f"{took} {wall_time(spent.wall_s)}{so_far}{within}."
    if faults.cost_s >= WORTH_TELLING * spent.wall_s > 0:
        number = count(len(faults.faults), "fault")
        sentence += f" {number} cost {wall_time(faults.cost_s)} of it."
    prices = run.config.cost
    if prices.host_per_hour:
        cost = cost_of(run.attempts, prices.host_per_hour)
        sentence += f" At the price that is set it cost {cost:,.2f} {prices.currency}{so_far}."
    return sentence


def _advice(spent: TimeSpent, faults: FaultHistory) -> str:
    """Against what takes most of the time, of all that takes more than it should."""
    candidates = [
        (faults.cost_s, LOSES_MUCH, advice.on_faults(faults)),
        (spent.evaluating_s, EVALUATES_MUCH, EVALUATE_LESS),
        (spent.starting_s, STARTS_MUCH, START_LESS),
    ]
    much = [
        (spent_s, advice)
        for spent_s, share, advice in candidates
        if spent_s > share * spent.wall_s > 0
    ]
    return max(much)[1] if much else ""
