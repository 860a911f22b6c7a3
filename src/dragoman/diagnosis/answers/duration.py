"""How long did the training run take, and what did it spend that time on?"""

import math
from collections.abc import Sequence

import numpy as np

from dragoman.config import CostSettings
from dragoman.diagnosis.findings import Advice, Figure, Finding, unknown
from dragoman.diagnosis.learning.power_law import LEAST_POINTS
from dragoman.diagnosis.phrasing import count, listed, money, percent, sentence_of, wall_time
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepParts
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS
from dragoman.diagnosis.speed.foreseen import forecast_figures, foreseen_of
from dragoman.diagnosis.speed.intervals import interval_for
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.phases import RunBottleneck, in_a_word, over_in_words
from dragoman.diagnosis.speed.time_spent import (
    TimeSpent,
    Waiting,
    cost_of,
    host_hours,
    time_spent,
    waiting_of,
)

WORTH_NAMING = 0.01
"""Of the whole: smaller parts stay in the figures."""
WORTH_PRICING = 0.05
"""Of the whole: so much waiting is worth a sentence."""
STARTS_MUCH = 0.10
EVALUATES_MUCH = 0.20
EVALUATES_WELL = 0.05
"""Of the time: so much evaluating still shows how a run goes."""
FEWEST_EVALUATIONS = LEAST_POINTS + 2
"""Of a run: fewer do not show how it goes, and those of the warm-up do not count."""
TAKES_MUCH = 0.20
"""Of the time: something else than steps is worth a word beside them."""
FEWEST_SENTENCES = 200
"""Translated in an evaluation: BLEU of fewer is mostly noise."""


def answer(run: RunFacts) -> Finding:
    if not len(run.steps):
        return unknown("no step has been recorded")
    still_s = math.fsum(silence.seconds for silence in run.silences if not silence.is_step)
    spent = time_spent(run.attempts, still_s)
    waiting = waiting_of(run.attempts, run.step_parts, run.silences)
    speed = speed_of(run)
    bottleneck = speed.bottleneck if speed else None
    saving_s = math.fsum(save.seconds for attempt in run.attempts for save in attempt.saves)
    return Finding(
        verdict=wall_time(spent.wall_s),
        confidence="high",
        sentence=_sentence(run, spent, waiting, bottleneck),
        evidence=[
            Figure("wall time", spent.wall_s, "s"),
            *forecast_figures(
                foreseen_of(run), {"hours": "forecast duration", "cost": "forecast cost"}
            ),
            Figure("training", spent.training_s, "s", note="steps that the model is made of"),
            *_training_figures(run.step_parts, spent.training_s),
            *_waiting_figures(run.step_parts, waiting),
            Figure("evaluating", spent.evaluating_s, "s"),
            Figure("writing checkpoints", saving_s, "s", note="beside the steps"),
            Figure("starting", spent.starting_s, "s"),
            Figure("steps done again", spent.repeated_s, "s"),
            Figure("down between attempts", spent.down_s, "s"),
            Figure("standing still", spent.still_s, "s"),
            Figure("other", spent.other_s, "s"),
            Figure(
                "lost to faults", run.faults.cost_s, "s", note="work that was lost, and downtime"
            ),
            *_cost_figures(run.attempts, run.config.cost, waiting),
            *(_attempt_figure(attempt) for attempt in run.attempts),
        ],
        advice=_advice(run, spent),
        plain=_plain(run, spent, waiting, bottleneck),
    )


def _training_figures(steps: StepParts, training_s: float) -> list[Figure]:
    """Returns the parts of all steps together, as far as all ranks have recorded them."""
    total_s = float(steps["step_s"].sum())
    if not total_s:
        return []
    named = {
        "computing, all ranks": "busy_s",
        "waiting for the network": "network_s",
        "waiting for the slowest rank": "straggling_s",
        "waiting for data": "data_s",
        "waiting for a checkpoint's copy": "checkpoint_s",
    }
    return [
        Figure(
            f"whole run: {name}",
            float(steps[column].sum()) / total_s * training_s,
            "s",
            note="of training",
        )
        for name, column in named.items()
        if not np.isnan(steps[column]).any()
    ]


def _waiting_figures(steps: StepParts, waiting: Waiting) -> list[Figure]:
    if np.isnan(steps["network_s"]).any():  # some of it was not recorded
        return []
    return [Figure("waiting", waiting.total_s, "s", note="in all attempts, for anything")]


def _cost_figures(
    attempts: Sequence[Attempt], prices: CostSettings, waiting: Waiting
) -> list[Figure]:
    hours = Figure("host hours", host_hours(attempts), "h")
    if not prices.host_per_hour:
        return [hours]
    price = f"{prices.host_per_hour:g} {prices.currency} for a host and hour"
    note = f"{price}, while attempts lasted" if len(attempts) > 1 else price
    cost, per_s = cost_of(attempts, prices.host_per_hour), prices.host_per_hour / 3600
    again = per_s * waiting.repeated_host_s
    return [
        Figure("cost", cost, prices.currency, note=note),
        Figure("cost of waiting", per_s * waiting.host_s, prices.currency),
        Figure("cost of steps done again", again, prices.currency),
        hours,
    ]


def _attempt_figure(attempt: Attempt) -> Figure:
    steps = "no step"
    if len(attempt.steps):
        steps = f"steps {attempt.first_step:,} to {attempt.last_step:,}"
    where = f"{count(attempt.ranks, 'rank')} on {count(max(1, len(attempt.host_names)), 'host')}"
    ending = attempt.state + (f": {attempt.reason}" if attempt.reason else "")
    note = f"{steps}, {where}; {ending}"
    return Figure(f"attempt {attempt.number}", attempt.wall_s, "s", note=note)


def _sentence(
    run: RunFacts, spent: TimeSpent, waiting: Waiting, bottleneck: RunBottleneck | None
) -> str:
    is_running = run.attempts[-1].state == "training"
    took = "The run has taken" if is_running else "The run took"
    so_far = " so far" if is_running else ""
    within = f" in {len(run.attempts)} attempts" if len(run.attempts) > 1 else ""
    parts = {"the steps of the model": spent.training_s, **_beside_steps(spent)}
    named = [
        f"{percent(part_s / spent.wall_s)} {'to' if place else 'went to'} {what}"
        for place, (what, part_s) in enumerate(parts.items())
        if spent.wall_s and part_s >= WORTH_NAMING * spent.wall_s
    ]
    spent_on = f": {listed(named)}" if named else ""
    sentence = f"{took} {wall_time(spent.wall_s)}{so_far}{within}{spent_on}."
    faults, prices = run.faults, run.config.cost
    if faults.cost_s >= WORTH_NAMING * spent.wall_s > 0:
        sentence += f" {count(len(faults.faults), 'fault')} cost {wall_time(faults.cost_s)} of it."
    if prices.host_per_hour:
        cost = cost_of(run.attempts, prices.host_per_hour)
        sentence += f" At the configured price it cost {money(cost, prices.currency)}{so_far}."
    sentences = (
        sentence,
        _forecast_in_words(run),
        _starting_in_words(run, spent),
        _waiting_in_words(run, waiting),
        sentence_of(_when_worst(run, waiting, bottleneck)),
    )
    return " ".join(each for each in sentences if each)


def _forecast_in_words(run: RunFacts) -> str:
    """Returns what was forecast for the whole run; empty: nothing was."""
    foreseen = foreseen_of(run)
    if foreseen is None or foreseen.forecast.hours is None:
        return ""
    forecast = foreseen.forecast
    paid = "" if forecast.cost is None else f" and {money(forecast.cost, forecast.currency)}"
    whole = f"{wall_time(3600 * foreseen.forecast.hours)}{paid}"
    return f"Before the start {whole} were forecast for the whole run."


def _beside_steps(spent: TimeSpent) -> dict[str, float]:
    """Returns what took time beside the steps of the model, with its seconds."""
    return {
        "steps that had to be done again": spent.repeated_s,
        "evaluating": spent.evaluating_s,
        "starting": spent.starting_s,
        "being down between attempts": spent.down_s,
        "standing still": spent.still_s,
        "all else": spent.other_s,
    }


def _starting_in_words(run: RunFacts, spent: TimeSpent) -> str:
    attempts = len(run.attempts)
    if attempts < 2 or len(run.steps) < FEW_STEPS or spent.starting_s < STARTS_MUCH * spent.wall_s:
        return ""
    each = wall_time(spent.starting_s / attempts)
    return f"Starting took a large part of it, {each} for each of {attempts} attempts."


def waiting_share(run: RunFacts, waiting: Waiting) -> float:
    """Returns the share of the money that paid for waiting; without a price, of the time."""
    if run.config.cost.host_per_hour:
        waited_s, all_s = waiting.host_s, 3600 * host_hours(run.attempts)
    else:
        waited_s, all_s = waiting.total_s, time_spent(run.attempts).wall_s
    return min(1.0, waited_s / all_s) if all_s else 0.0


def _waiting_in_words(run: RunFacts, waiting: Waiting) -> str:
    share, prices = waiting_share(run, waiting), run.config.cost
    if share < WORTH_PRICING:
        return ""
    parts = [
        f"{percent(waited_s / waiting.total_s * share)} for {what}"
        for what, waited_s in waiting.seconds.items()
        if waited_s / waiting.total_s * share >= WORTH_NAMING
    ]
    if not prices.host_per_hour:
        hours = wall_time(waiting.total_s)
        return f"{percent(share)} of that time ({hours}) was waiting: {listed(parts)}."
    paid = money(waiting.host_s / 3600 * prices.host_per_hour, prices.currency)
    return f"{percent(share)} of that money ({paid}) paid for waiting: {listed(parts)}."


def _when_worst(run: RunFacts, waiting: Waiting, bottleneck: RunBottleneck | None) -> str:
    """Says when the waiting was worst, where that is over; empty: it is not."""
    if bottleneck is None or not over_in_words(bottleneck):
        return ""
    if waiting_share(run, waiting) < WORTH_PRICING:
        return ""
    return f"the worst of it was{in_a_word(bottleneck)}, and {over_in_words(bottleneck)}"


def _plain(
    run: RunFacts, spent: TimeSpent, waiting: Waiting, bottleneck: RunBottleneck | None
) -> str:
    is_running = run.attempts[-1].state == "training"
    plain = f"The run {'has taken' if is_running else 'took'} {wall_time(spent.wall_s)}"
    share, prices = waiting_share(run, waiting), run.config.cost
    what = "that time was waiting"
    if prices.host_per_hour:
        cost = cost_of(run.attempts, prices.host_per_hour)
        plain += f" and cost {money(cost, prices.currency)}"
        what = "that paid for waiting"
    if is_running:
        plain += " so far"
    beside = _beside_steps(spent) if spent.wall_s else {}
    del beside["standing still"]  # that is waiting, too
    largest = max(beside, key=lambda each: beside[each])
    parts = [f"{percent(share)} of {what}"] if share >= WORTH_PRICING else []
    if beside[largest] >= TAKES_MUCH * spent.wall_s:
        parts.append(f"{percent(beside[largest] / spent.wall_s)} of the time went to {largest}")
    if share >= WORTH_PRICING and (then := _when_worst(run, waiting, bottleneck)):
        parts[0] += f"; {then}"
    return f"{'; '.join([plain, ', and '.join(parts)]) if parts else plain}."


def _advice(run: RunFacts, spent: TimeSpent) -> list[Advice]:
    """Returns advice on what evaluating takes; faults and waiting have answers of their own."""
    if len(run.steps) < FEW_STEPS or spent.evaluating_s <= EVALUATES_MUCH * spent.wall_s:
        return []
    settings, steps = run.config.evaluation, len(run.steps)
    step_s = spent.training_s / steps
    evaluations = len(run.evaluations)
    each_s = math.fsum(evaluation.seconds for evaluation in run.evaluations) / max(1, evaluations)
    every = min(interval_for(each_s, step_s, EVALUATES_WELL), steps // FEWEST_EVALUATIONS)
    share = percent(spent.evaluating_s / spent.wall_s)
    if every > settings.every_steps:
        return [
            Advice(
                f"Evaluate less often, every {every:,} steps instead of every "
                f"{settings.every_steps:,}: it takes {share} of the time.",
                advice.with_setting(run, "evaluation.every_steps", every),
                saves_s=spent.evaluating_s * (1 - settings.every_steps / every),
            )
        ]
    if settings.beam > 1:
        return [
            Advice(
                "Search greedily while training, which is enough to compare checkpoints: "
                f"evaluating takes {share} of the time.",
                advice.with_setting(run, "evaluation.beam", 1),
            )
        ]
    sentences = _translated(run)
    fewer = max(FEWEST_SENTENCES, sentences // 4 // 100 * 100)
    if fewer >= sentences:
        return []
    return [
        Advice(
            f"Translate {fewer:,} sentences in an evaluation instead of {sentences:,}: it takes "
            f"{share} of the time.",
            advice.with_setting(run, "evaluation.translate_sentences", fewer),
        )
    ]


def _translated(run: RunFacts) -> int:
    """Returns how many sentences an evaluation translates; 0: not known."""
    passport = run.record.passport
    validation = passport.splits.get("validation") if passport else None
    known = validation.pairs_kept if validation else 0
    return min(filter(None, (known, run.config.evaluation.translate_sentences)), default=0)
