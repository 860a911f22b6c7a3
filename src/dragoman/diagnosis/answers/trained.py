"""Is the model fully trained? Verdicts: "yes" | "not yet" | "too early to say".

The verdict rests on the validation loss after the warm-up and on what more training would bring. It
does not matter whether a run has reached its step limit. A learning rate that falls to an end of
its own makes the loss fall by itself there, so what more would bring is taken from the losses
before that, and a loss that rests at a rate still high is no end. A loss that rests far above what
translation models reach is no end either: something else than the length of the training is wrong.
Schedule-Free has its rate stay on purpose: what it evaluates is an average, at its end at any step.
"""

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from dragoman.config import Config
from dragoman.diagnosis.answers.loss_spikes import divergence_sentence
from dragoman.diagnosis.answers.overfitting import loss_figure
from dragoman.diagnosis.answers.unhealthy import (
    MANY_SKIPPED,
    diverged,
    learned_nothing,
    much_skipped,
    poor,
    skipped_share,
    unheld,
)
from dragoman.diagnosis.estimate import Estimate
from dragoman.diagnosis.findings import Advice, Confidence, Figure, Finding, recorded, unknown
from dragoman.diagnosis.learning.bleu_scale import grade_of
from dragoman.diagnosis.learning.convergence import (
    NEXT_SHARE,
    WORTH_NATS,
    Forecast,
    Verdict,
    evaluations_missing,
    forecast_of,
    is_steady,
    rate_left_of,
    verdict_of,
)
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.instability import divergence_of
from dragoman.diagnosis.learning.leak import leak_of
from dragoman.diagnosis.learning.level import FAIR_BLEU, SURPRISE, Level, level_of, loss_words
from dragoman.diagnosis.learning.overfit import Overfit, overfit_of
from dragoman.diagnosis.learning.pace import Pace, pace_of, round_below
from dragoman.diagnosis.learning.power_law import LEAST_POINTS
from dragoman.diagnosis.learning.remedies import (
    evaluate_more,
    is_finished,
    shorter_warm_up,
    train_on,
    use_best,
)
from dragoman.diagnosis.phrasing import count, percent, there_are, wall_time
from dragoman.diagnosis.run.facts import RunFacts

AT_END_SHARE = 0.02
"""Of the way from peak to final rate that may be left, for a schedule to be done."""
DIVERGED_NATS = 0.3
"""Validation and training sample both risen by this much: what was learned is lost."""
LEAST_FALLING = 3
"""Evaluations, each better than the one before, for a run to be worth going on."""
LIMITS = ("steps", "epochs", "hours")
"""Causes of an end that the settings set."""

Phase = Literal["falling", "ended", "constant", "averaged", "endless"]
"""Of the learning rate: only cosine and linear fall to an end; noam never ends. Averaged: constant,
and an average of the weights takes the place of an end (Schedule-Free)."""

_NEXT_QUARTER = "the next 25 % of tokens"


def phase_of(config: Config, step: int) -> Phase:
    """Returns where the learning rate is at this step."""
    rate_left = rate_left_of(config, step)
    if config.optimizer.kind == "schedule-free":
        return "averaged"
    if rate_left is None:
        return "constant" if config.schedule.kind == "constant" else "endless"
    return "ended" if rate_left <= AT_END_SHARE else "falling"


def verdict_in(phase: Phase, forecast: Forecast) -> tuple[Verdict, Confidence]:
    """Returns the verdict of the forecast, corrected by what the schedule has in store."""
    verdict, confidence = verdict_of(forecast)
    if phase == "falling" and verdict != "not yet":
        return "not yet", "medium"
    if phase == "ended" and verdict != "yes" and forecast.is_at_rest:
        return "yes", "medium"
    if phase == "constant" and verdict == "yes":
        return "yes", "medium"
    return verdict, confidence


def answer(run: RunFacts) -> Finding:
    every = Evaluations.from_events(run.evaluations)
    if not len(every):
        return replace(
            unknown("no evaluation has been made, and only those can tell"),
            plain="Nobody can tell yet: the model has not been tested on held-out sentences.",
            advice=evaluate_more(run, LEAST_POINTS),
        )
    evaluations, config = every.finite, run.config
    evidence = _losses(evaluations)
    if leak := leak_of(config, evaluations, [scored.bleu for scored in run.record.scored]):
        return unheld(leak, "whether the model is trained", evidence)
    if divergence := _divergence_words(run, every):
        return diverged(run, divergence, evidence)
    after = evaluations.where(evaluations.step >= config.schedule.warmup_steps)
    evidence.append(Figure("evaluations after warm-up", len(after), ""))
    last_step = int(max([*run.steps["step"][-1:], *evaluations.step[-1:]], default=0))
    if (warmup_left := config.schedule.warmup_steps - last_step) > 0:
        return _in_warm_up(run, last_step, warmup_left, evidence)
    overfit = overfit_of(after)
    if overfit and overfit.state == "overfitting":
        return _past_its_best(run, overfit, last_step, evidence)
    pace = pace_of(run)
    forecast = forecast_of(
        after.step * pace.tokens_per_step,
        after.validation_loss,
        after.bleu,
        is_steady(config, after.step),
        after.bleu_error,
    )
    if forecast is None:
        return _too_few(run, after, last_step, evidence)
    evidence += _forecast_figures(forecast, pace, config.cost.currency, last_step)
    level = level_of(after, run.record.vocabulary)
    evidence.append(
        Figure("loss, of that of guessing", level.share, "share", note="median of the newest three")
    )
    phase = phase_of(config, last_step)
    verdict, confidence = verdict_in(phase, forecast)
    if verdict_of(forecast)[0] != "not yet" and level.has_learned_nothing:
        return learned_nothing(run, level, evidence)
    if verdict != "not yet" and level.is_poor:
        return poor(run, level, verdict == "yes", evidence)
    skipped = skipped_share(run)
    if verdict == "yes" and skipped > MANY_SKIPPED:
        return much_skipped(run, level, skipped, evidence)
    sentences = (
        _opening(verdict, forecast, level),
        _why(config, phase, verdict, forecast, last_step),
        _forecast_words(forecast, pace, config.cost.currency, last_step, phase == "ended"),
        _limit_words(run, verdict),
    )
    return Finding(
        verdict,
        confidence,
        " ".join(filter(None, sentences)),
        evidence,
        _advice(run, phase, verdict, last_step),
        _plain(verdict, level),
    )


def _divergence_words(run: RunFacts, evaluations: Evaluations) -> str:
    """Returns how the run has diverged; empty: it has not."""
    last = run.faults.unresumed
    if last and last.cause == "diverged":
        return (
            f"It gave up after step {last.step:,}, since going back to a checkpoint did not help."
        )
    divergence = divergence_of(run.steps["step"], run.steps["loss"])
    if divergence:
        return divergence_sentence(divergence)
    if math.isnan(evaluations.validation_loss[-1]):
        return f"The validation loss after step {int(evaluations.step[-1]):,} is not a number."
    overfit = overfit_of(evaluations.finite)
    if overfit and overfit.state == "both rise" and overfit.rise.rise > DIVERGED_NATS:
        return (
            f"Since step {overfit.lowest_step:,} the validation loss has risen by "
            f"{overfit.rise.rise:.2f} nats ({SURPRISE}) and the loss on a training sample by "
            f"{overfit.train_change:.2f}."
        )
    return ""


def _past_its_best(
    run: RunFacts, overfit: Overfit, last_step: int, evidence: list[Figure]
) -> Finding:
    step = overfit.lowest_step
    if overfit.bleu_rises:
        return Finding(
            "not yet",
            "low",
            f"Not yet, going by the translations: BLEU has risen by {overfit.bleu_change:.1f} "
            f"since step {step:,}, and still rises. The validation loss was lowest there and has "
            f"risen by {overfit.rise.rise:.3f} nats ({SURPRISE}) since then, while the training "
            "sample's falls: the model grows too sure of itself, and that will cost translations "
            "in time.",
            evidence,
            train_on(run, _quarter_more(last_step), "BLEU still rises"),
            "Not quite: the translations still get better, although the model begins to learn its "
            "training sentences by heart.",
        )
    confidence: Confidence = "high" if overfit.bleu_falls else "medium"
    return Finding(
        "yes",
        confidence,
        f"Yes, and past its best: the validation loss was lowest around step {step:,} and has "
        f"risen by {overfit.rise.rise:.3f} nats ({SURPRISE}) since then, while the training "
        "sample's still falls. More training of this kind makes the model worse.",
        evidence,
        use_best(run, "it is the best that is kept, and later ones are worse"),
        "Yes, and more than enough: the model was better earlier, and more training makes it "
        "worse.",
    )


def _in_warm_up(run: RunFacts, last_step: int, warmup_left: int, evidence: list[Figure]) -> Finding:
    needed = warmup_left + LEAST_POINTS * run.config.evaluation.every_steps
    sentence = (
        f"Too early to say: the learning rate is still rising, for "
        f"{count(warmup_left, 'more step')}, and the loss of a warm-up says nothing about its end. "
    )
    warmup = run.config.schedule.warmup_steps
    planned = last_step if is_finished(run) else run.config.training.steps
    if not planned or planned > warmup:
        sentence += f"After about {count(needed, 'more step')} it can be said."
        plain = "It is too early to say: the training still warms up."
        return Finding("too early to say", "none", sentence, evidence, plain=plain)
    sentence += f"schedule.warmup_steps = {warmup:,} is too long for {count(planned, 'step')}."
    advice = [shorter_warm_up(run, planned)]
    if needed <= planned:
        because = "it ended before its learning rate had reached its peak"
        advice = [*train_on(run, last_step + needed, because), *advice]
    plain = "It is too early to say: the settings let the training end before it has warmed up."
    return Finding("too early to say", "none", sentence, evidence, advice, plain)


def _too_few(run: RunFacts, after: Evaluations, last_step: int, evidence: list[Figure]) -> Finding:
    missing = max(1, LEAST_POINTS - len(after))
    sentence = (
        f"Too early to say: {there_are(len(after), 'evaluation')} after the warm-up, and a trend "
        f"with its noise needs {LEAST_POINTS}. After {count(missing, 'more evaluation')} it can be "
        "said."
    )
    losses = after.validation_loss
    falls = len(losses) >= LEAST_FALLING and bool((np.diff(losses) < 0).all())
    if not falls:
        plain = "It is too early to say: there are too few tests on held-out sentences."
        advice = evaluate_more(run, LEAST_POINTS)
        return Finding("too early to say", "none", sentence, evidence, advice, plain)
    fall = float(losses[0] - losses[-1])
    sentence += (
        f" Each evaluation so far was better than the one before, by {fall:.3f} nats ({SURPRISE}) "
        "in all."
    )
    more = max(NEXT_SHARE * last_step, missing * run.config.evaluation.every_steps)
    because = "each evaluation was better than the last"
    advice = train_on(run, last_step + math.ceil(more), because)
    plain = "It is too early to say, but the model got better at every test, so go on."
    return Finding("too early to say", "none", sentence, evidence, advice, plain)


def _plain(verdict: Verdict, level: Level) -> str:
    if verdict == "yes":
        modest = "" if not level.bleu < FAIR_BLEU else ", although its translations are modest"
        return f"Yes: more training of this kind would hardly make the model better{modest}."
    if verdict == "not yet":
        return "No: the model still gets better, so more training is worth it."
    return "It is too early to say: the tests differ too much from each other to see a trend."


def _opening(verdict: Verdict, forecast: Forecast, level: Level) -> str:
    at = loss_words(level.loss)
    if verdict == "yes":
        bleu = (
            ""
            if not level.bleu < FAIR_BLEU
            else (f", which at {level.bleu:.1f} BLEU ({grade_of(level.bleu)}) is a modest result")
        )
        return f"Yes: the validation loss has come to rest at {at}{bleu}."
    if verdict == "too early to say":
        return f"Too early to say: at {at} the noise of the evaluations hides the trend."
    if forecast.gain().low > 0:
        return f"Not yet: the validation loss, {at}, still falls."
    return f"Not yet: the validation loss is {at}."


def _why(config: Config, phase: Phase, verdict: Verdict, forecast: Forecast, last_step: int) -> str:
    if verdict == "too early to say":
        missing = evaluations_missing(forecast)
        return f"About {count(missing, 'more evaluation')} would settle it."
    if verdict == "not yet" and forecast.gain().low <= WORTH_NATS and forecast.bleu_still_rises:
        return "The validation loss is nearly at rest, but BLEU still rises clearly."
    if phase == "falling":
        return (
            f"The {config.schedule.kind} schedule has "
            f"{percent(rate_left_of(config, last_step) or 0.0)} of the way down still before it, "
            "and the loss falls by itself as the rate does."
        )
    if phase == "ended":
        return f"This {config.schedule.kind} schedule has come to its end, and its rate with it."
    if phase == "constant" and verdict == "yes":
        return "That is so at a constant rate; a last stretch with a falling one mostly adds some."
    if phase == "averaged" and verdict == "yes":
        return (
            "The rate is constant on purpose: Schedule-Free averages its weights instead of "
            "lowering its rate, so nothing is left to come, and the run can be stopped here."
        )
    if phase == "averaged":
        return (
            "Schedule-Free has no planned end: the run can be stopped at any step that is good "
            "enough, and trained on later."
        )
    return ""


def _advice(run: RunFacts, phase: Phase, verdict: Verdict, last_step: int) -> list[Advice]:
    if verdict == "yes":
        return []
    if phase == "falling":
        because = "the loss falls most while the rate comes down"
        return train_on(run, run.config.training.steps or last_step, because)
    if verdict == "too early to say":
        return []
    return train_on(run, _quarter_more(last_step), "the model still gets better")


def _quarter_more(last_step: int) -> int:
    return math.ceil((1 + NEXT_SHARE) * last_step)


def _limit_words(run: RunFacts, verdict: Verdict) -> str:
    """Returns a remark for those who take a run that ended at its limit for trained."""
    last = run.attempts[-1] if run.attempts else None
    if verdict == "yes" or last is None or last.state != "finished" or not last.ends:
        return ""
    if last.ends[0].event.cause not in LIMITS:
        return ""
    return f"The run ended because {last.reason}, which says nothing about the model."


def _forecast_words(
    forecast: Forecast, pace: Pace, currency: str, last_step: int, is_schedule_done: bool
) -> str:
    """`is_schedule_done`: the rate has come to its end, and only a longer schedule brings more."""
    steps = NEXT_SHARE * last_step
    seconds, cost, bleu = pace.seconds(steps), pace.cost(steps), forecast.bleu_gain()
    effort = [count(round(steps), "step")]
    effort += [] if seconds is None else [wall_time(seconds)]
    effort += [] if cost is None else [f"{cost:,.2f} {currency}"]
    what = "A schedule longer by" if is_schedule_done else "The next"
    of_bleu = f" and to bring {_range(bleu, 1)} BLEU" if bleu else ""
    of_round = ""
    if last_step and not is_schedule_done:
        round_steps = round_below(steps)
        gain = forecast.gain(round_steps / last_step).value
        of_round = f"; the next {round_steps:,} steps, {gain:.3f}"
    return (
        f"{what} 25 % of tokens ({', '.join(effort)}) {'is' if is_schedule_done else 'are'} "
        f"expected to lower the validation loss by {_range(forecast.gain(), 3)} nats{of_bleu}"
        f"{of_round} (power law through the {forecast.fit.points} newest evaluations)."
    )


def _range(estimate: Estimate, digits: int) -> str:
    """0.017 (0.013 to 0.022)"""
    value, low, high = (f"{each:.{digits}f}" for each in estimate)
    return f"{value} ({low} to {high})"


def _losses(evaluations: Evaluations) -> list[Figure]:
    if not len(evaluations):
        return []
    losses, errors = evaluations.validation_loss, evaluations.validation_loss_error
    places = {"validation loss": -1, "lowest validation loss": int(np.argmin(losses))}
    return [
        loss_figure(name, losses[i], errors[i], f"after step {int(evaluations.step[i]):,}")
        for name, i in places.items()
    ]


def _forecast_figures(
    forecast: Forecast, pace: Pace, currency: str, last_step: int
) -> list[Figure]:
    steps = NEXT_SHARE * last_step
    round_steps = round_below(steps)
    of_round = forecast.gain(round_steps / last_step) if last_step else forecast.gain()
    bleu, trend = forecast.bleu_gain(), forecast.trend
    return recorded(
        forecast.gain().figure("expected gain in loss", "nats", _NEXT_QUARTER),
        bleu and bleu.figure("expected gain in BLEU", "BLEU", _NEXT_QUARTER),
        Figure("tokens for it", steps * pace.tokens_per_step, "tokens", note=_NEXT_QUARTER),
        Figure("steps for it", round(steps), "steps", note=_NEXT_QUARTER),
        Figure("time for it", pace.seconds(steps), "s", note=_NEXT_QUARTER),
        Figure("cost of it", pace.cost(steps), currency, note=_NEXT_QUARTER),
        of_round.figure(f"expected gain of the next {round_steps:,} steps", "nats"),
        trend and trend.figure("change at the end, per 25 % of tokens", "nats"),
        Figure("exponent of the power law", forecast.fit.exponent, ""),
        Figure("noise of an evaluation", forecast.fit.noise, "nats"),
        Figure("evaluations used", forecast.fit.points, ""),
    )
