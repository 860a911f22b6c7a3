"""How long did the training run take, and what did it spend that time on?"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dragoman.config import CostSettings
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed, percent, wall_time
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.diagnosis.run.steps import StepParts

KEY = "duration"
QUESTION = "How long did the training run take?"

WORTH_TELLING = 0.01
"""Of the whole: smaller parts stay in the figures."""
LOSES_MUCH = 0.05
EVALUATES_MUCH = 0.20
STARTS_MUCH = 0.10

START_AGAIN = "Let something start the run again when it breaks off: most was lost to waiting."
SAVE_MORE_OFTEN = "Save more often: checkpoints.lost_minutes bounds how much work a fault can cost."
EVALUATE_LESS = (
    "Evaluate less often (evaluation.every_steps) or translate fewer sentences each time "
    "(evaluation.translate_sentences)."
)
START_LESS = "Starting took a large part of it; fewer and longer attempts would spread that better."


class Times(NamedTuple):
    """They add up to `wall_s`."""

    wall_s: float
    """From the first start to the last sign, without pauses after an attempt that ended well."""
    training_s: float
    """Steps that the model is made of."""
    repeated_s: float
    """Steps that were lost."""
    evaluating_s: float
    starting_s: float
    """From each start to the first step."""
    down_s: float
    """Between an attempt that broke off and the next."""
    still_s: float
    """Hanging between steps, evaluations and saves."""
    other_s: float


def answer(run: RunFacts) -> Finding:
    if not len(run.steps):
        return unknown(KEY, QUESTION, "no step has been recorded")
    silences = run.silences
    still_s = math.fsum(silence.seconds for silence in silences if not silence.is_step)
    times = times_of(run.attempts, still_s)
    faults = run.faults
    is_running = run.attempts[-1].state == "training"
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=wall_time(times.wall_s),
        confidence="high",
        sentence=_sentence(run, times, faults, is_running),
        evidence=[
            Figure("wall time", times.wall_s, "s"),
            Figure("training", times.training_s, "s", note="steps that the model is made of"),
            *_waiting(run.step_parts, times.training_s),
            Figure("evaluating", times.evaluating_s, "s"),
            Figure("writing checkpoints", _saving_s(run), "s", note="beside the steps"),
            Figure("starting", times.starting_s, "s"),
            Figure("steps done again", times.repeated_s, "s"),
            Figure("down between attempts", times.down_s, "s"),
            Figure("standing still", times.still_s, "s"),
            Figure("other", times.other_s, "s"),
            Figure("lost to faults", faults.cost_s, "s", note="work that was lost, and downtime"),
            *_costs(run.attempts, run.config.cost),
            *(_attempt_figure(attempt) for attempt in run.attempts),
        ],
        advice=_advice(times, faults),
    )


def times_of(attempts: Sequence[Attempt], still_s: float = 0.0) -> Times:
    """`still_s`: how long nothing went on."""
    alive_s = math.fsum(attempt.wall_s for attempt in attempts)
    down_s = math.fsum(
        max(0.0, after.started_at - before.ended_at)
        for before, after in pairwise(attempts)
        if before.state != "finished"
    )
    training_s = repeated_s = 0.0
    for attempt in attempts:
        training_s += float(attempt.steps["step_s"][~attempt.is_lost].sum())
        repeated_s += float(attempt.steps["step_s"][attempt.is_lost].sum())
    evaluating_s = math.fsum(e.seconds for attempt in attempts for e in attempt.evaluations)
    starting_s = math.fsum(_starting_s(attempt) for attempt in attempts)
    spent_s = training_s + repeated_s + evaluating_s + starting_s
    still_s = min(still_s, max(0.0, alive_s - spent_s))
    return Times(
        wall_s=alive_s + down_s,
        training_s=training_s,
        repeated_s=repeated_s,
        evaluating_s=evaluating_s,
        starting_s=starting_s,
        down_s=down_s,
        still_s=still_s,
        other_s=max(0.0, alive_s - spent_s - still_s),
    )


def _starting_s(attempt: Attempt) -> float:
    steps = attempt.steps
    if not len(steps):
        return attempt.wall_s
    first_began_at = float(steps["at"][0] - steps["step_s"][0])
    return min(max(0.0, first_began_at - attempt.started_at), attempt.wall_s)


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
    hosts_s = math.fsum(attempt.wall_s * max(1, len(attempt.host_names)) for attempt in attempts)
    price = f"{prices.host_per_hour:g} {prices.currency} for a host and hour"
    note = f"{price}, while attempts lasted" if len(attempts) > 1 else price
    return [
        Figure("cost", cost_of(attempts, prices.host_per_hour), prices.currency, note=note),
        Figure("host hours", hosts_s / 3600, "h"),
    ]


def cost_of(attempts: Sequence[Attempt], host_per_hour: float) -> float:
    """What is paid between attempts nobody has recorded, so it is not counted."""
    return math.fsum(
        attempt.wall_s / 3600 * max(1, len(attempt.host_names)) * host_per_hour
        for attempt in attempts
    )


def cost_per_s(attempts: Sequence[Attempt], host_per_hour: float) -> float:
    """Of all hosts, in the mean over the attempts."""
    alive_s = math.fsum(attempt.wall_s for attempt in attempts)
    return cost_of(attempts, host_per_hour) / alive_s if alive_s else 0.0


def _attempt_figure(attempt: Attempt) -> Figure:
    steps = "no step"
    if len(attempt.steps):
        steps = f"steps {attempt.first_step:,} to {attempt.last_step:,}"
    where = f"{count(attempt.ranks, 'rank')} on {count(max(1, len(attempt.host_names)), 'host')}"
    ending = attempt.state + (f": {attempt.reason}" if attempt.reason else "")
    return Figure(
        f"attempt {attempt.number}", attempt.wall_s, "s", note=f"{steps}, {where}; {ending}"
    )


def _sentence(run: RunFacts, times: Times, faults: FaultHistory, is_running: bool) -> str:
    took = "The run has taken" if is_running else "The run took"
    so_far = " so far" if is_running else ""
    attempts = len(run.attempts)
    within = f" in {attempts} attempts" if attempts > 1 else ""
    parts = [
        ("went to the steps of the model", times.training_s),
        ("to steps that had to be done again", times.repeated_s),
        ("to evaluating", times.evaluating_s),
        ("to starting", times.starting_s),
        ("to being down between attempts", times.down_s),
        ("to standing still", times.still_s),
        ("to all else", times.other_s),
    ]
    told = [
        f"{percent(spent_s / times.wall_s)} {what}"
        for what, spent_s in parts
        if times.wall_s and spent_s >= WORTH_TELLING * times.wall_s
    ]
    sentence = f"{took} {wall_time(times.wall_s)}{so_far}{within}: {listed(told)}."
    if not told:
        sentence = f"{took} {wall_time(times.wall_s)}{so_far}{within}."
    if faults.cost_s >= WORTH_TELLING * times.wall_s > 0:
        number = count(len(faults.faults), "fault")
        sentence += f" {number} cost {wall_time(faults.cost_s)} of it."
    prices = run.config.cost
    if prices.host_per_hour:
        cost = cost_of(run.attempts, prices.host_per_hour)
        sentence += f" At the price that is set it cost {cost:,.2f} {prices.currency}{so_far}."
    return sentence


def _advice(times: Times, faults: FaultHistory) -> str:
    """Against what takes most of the time, of all that takes more than it should."""
    candidates = [
        (faults.cost_s, LOSES_MUCH, against_losses(faults)),
        (times.evaluating_s, EVALUATES_MUCH, EVALUATE_LESS),
        (times.starting_s, STARTS_MUCH, START_LESS),
    ]
    much = [
        (spent_s, advice)
        for spent_s, share, advice in candidates
        if spent_s > share * times.wall_s > 0
    ]
    return max(much)[1] if much else ""


def against_losses(faults: FaultHistory) -> str:
    down_s = sum(fault.down_s for fault in faults.faults)
    return START_AGAIN if down_s > faults.cost_s / 2 else SAVE_MORE_OFTEN
