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

WORTH_NAMING = 0.01
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
        return unknown("no step has been recorded")
    still_s = math.fsum(silence.seconds for silence in run.silences if not silence.is_step)
    spent, faults = time_spent(run.attempts, still_s), run.faults
    saving_s = math.fsum(save.seconds for attempt in run.attempts for save in attempt.saves)
    return Finding(
        verdict=wall_time(spent.wall_s),
        confidence="high",
        sentence=_sentence(run, spent),
        evidence=[
            Figure("wall time", spent.wall_s, "s"),
            Figure("training", spent.training_s, "s", note="steps that the model is made of"),
            *_training_figures(run.step_parts, spent.training_s),
            Figure("evaluating", spent.evaluating_s, "s"),
            Figure("writing checkpoints", saving_s, "s", note="beside the steps"),
            Figure("starting", spent.starting_s, "s"),
            Figure("steps done again", spent.repeated_s, "s"),
            Figure("down between attempts", spent.down_s, "s"),
            Figure("standing still", spent.still_s, "s"),
            Figure("other", spent.other_s, "s"),
            Figure("lost to faults", faults.cost_s, "s", note="work that was lost, and downtime"),
            *_cost_figures(run.attempts, run.config.cost),
            *(_attempt_figure(attempt) for attempt in run.attempts),
        ],
        advice=_advice(spent, faults),
    )


def _training_figures(steps: StepParts, training_s: float) -> list[Figure]:
    """Returns the parts of all steps together, as far as all ranks have recorded them."""
    total_s = float(steps["step_s"].sum())
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
        Figure(name, float(steps[column].sum()) / total_s * training_s, "s", note="of training")
        for name, column in named.items()
        if not np.isnan(steps[column]).any()
    ]


def _cost_figures(attempts: Sequence[Attempt], prices: CostSettings) -> list[Figure]:
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
    note = f"{steps}, {where}; {ending}"
    return Figure(f"attempt {attempt.number}", attempt.wall_s, "s", note=note)


def _sentence(run: RunFacts, spent: TimeSpent) -> str:
    is_running = run.attempts[-1].state == "training"
    took = "The run has taken" if is_running else "The run took"
    so_far = " so far" if is_running else ""
    within = f" in {len(run.attempts)} attempts" if len(run.attempts) > 1 else ""
    parts = {
        "went to the steps of the model": spent.training_s,
        "to steps that had to be done again": spent.repeated_s,
        "to evaluating": spent.evaluating_s,
        "to starting": spent.starting_s,
        "to being down between attempts": spent.down_s,
        "to standing still": spent.still_s,
        "to all else": spent.other_s,
    }
    named = [
        f"{percent(part_s / spent.wall_s)} {what}"
        for what, part_s in parts.items()
        if spent.wall_s and part_s >= WORTH_NAMING * spent.wall_s
    ]
    spent_on = f": {listed(named)}" if named else ""
    sentence = f"{took} {wall_time(spent.wall_s)}{so_far}{within}{spent_on}."
    faults, prices = run.faults, run.config.cost
    if faults.cost_s >= WORTH_NAMING * spent.wall_s > 0:
        sentence += f" {count(len(faults.faults), 'fault')} cost {wall_time(faults.cost_s)} of it."
    if prices.host_per_hour:
        cost = cost_of(run.attempts, prices.host_per_hour)
        sentence += f" At the configured price it cost {cost:,.2f} {prices.currency}{so_far}."
    return sentence


def _advice(spent: TimeSpent, faults: FaultHistory) -> str:
    """Returns advice against what takes most of the time, of all that takes more than it should."""
    candidates = [
        (faults.cost_s, LOSES_MUCH, advice.on_faults(faults)),
        (spent.evaluating_s, EVALUATES_MUCH, EVALUATE_LESS),
        (spent.starting_s, STARTS_MUCH, START_LESS),
    ]
    much = [
        (part_s, what_to_do)
        for part_s, share, what_to_do in candidates
        if part_s > share * spent.wall_s > 0
    ]
    return max(much)[1] if much else ""
