"""Is the model fully trained? Verdicts: "yes" | "not yet" | "too early to say".

The verdict rests on the validation loss after the warm-up and on what more training would bring. It
does not matter whether a run has reached its step limit. A learning rate that falls to an end of
its own makes the loss fall by itself there, so what more would bring is taken from the losses
before that, and a loss that rests at a rate still high is no end.
"""

import math
from typing import Literal

import numpy as np

from dragoman.config import Config
from dragoman.diagnosis.answers.loss_spikes import divergence_sentence
from dragoman.diagnosis.answers.overfitting import loss_figure
from dragoman.diagnosis.estimate import Estimate
from dragoman.diagnosis.findings import Confidence, Figure, Finding, recorded, unknown
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
from dragoman.diagnosis.learning.overfit import Overfit, overfit_of
from dragoman.diagnosis.learning.pace import Pace, pace_of, round_below
from dragoman.diagnosis.learning.power_law import LEAST_POINTS
from dragoman.diagnosis.phrasing import count, percent, there_are, wall_time
from dragoman.diagnosis.run.facts import RunFacts

AT_END_SHARE = 0.02
"""Of the way from peak to final rate that may be left, for a schedule to be done."""
UNLEARNED_SHARE = 0.55
"""Of the loss of a uniform guess. A model that knows the frequencies of pieces, and nothing else,
is at about two thirds of it."""
DIVERGED_NATS = 0.3
"""Validation and training sample both risen by this much: what was learned is lost."""
LIMITS = ("steps", "epochs", "hours")
"""Causes of an end that the settings set."""

Phase = Literal["falling", "ended", "constant", "endless"]
"""Of the learning rate: only cosine and linear fall to an end; noam never ends."""

_NEXT_QUARTER = "the next 25 % of tokens"


def phase_of(config: Config, step: int) -> Phase:
    """Returns where the learning rate is at this step."""
    rate_left = rate_left_of(config, step)
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
        return unknown("no evaluation has been made, and only those can tell")
    evaluations, config = every.finite, run.config
    evidence = _losses(evaluations)
    if divergence := _divergence_words(run, every):
        sentence = f"Not yet: the run has diverged. {divergence}"
        advice = (
            "Go back to the best checkpoint; start a new run with a lower learning rate or a "
            "longer warm-up."
        )
        return Finding("not yet", "high", sentence, evidence, advice)
    after = evaluations.where(evaluations.step >= config.schedule.warmup_steps)
    evidence.append(Figure("evaluations after warm-up", len(after), ""))
    last_step = int(max([*run.steps["step"][-1:], *evaluations.step[-1:]], default=0))
    if (warmup_left := config.schedule.warmup_steps - last_step) > 0:
        steps = warmup_left + LEAST_POINTS * config.evaluation.every_steps
        return _too_early(
            f"the learning rate is still rising, for {count(warmup_left, 'more step')}, and the "
            f"loss of a warm-up says nothing about its end. After about "
            f"{count(steps, 'more step')} it can be said.",
            evidence,
        )
    overfit = overfit_of(after)
    if overfit and overfit.state == "overfitting":
        return _past_its_best(overfit, evidence)
    pace = pace_of(run)
    tokens = after.step * pace.tokens_per_step
    forecast = forecast_of(tokens, after.validation_loss, after.bleu, is_steady(config, after.step))
    if forecast is None:
        missing = max(1, LEAST_POINTS - len(after))
        return _too_early(
            f"{there_are(len(after), 'evaluation')} after the warm-up, and a trend with its noise "
            f"needs {LEAST_POINTS}. After {count(missing, 'more evaluation')} it can be said.",
            evidence,
        )
    evidence += _forecast_figures(forecast, pace, config.cost.currency, last_step)
    guessing = math.log(run.record.vocabulary)
    unlearned = after.validation_loss.min() > UNLEARNED_SHARE * guessing
    if unlearned and verdict_of(forecast)[0] == "yes":
        return _learned_nothing(after, guessing, evidence)
    phase = phase_of(config, last_step)
    verdict, confidence = verdict_in(phase, forecast)
    sentences = (
        _opening(verdict, forecast),
        _why(config, phase, verdict, forecast, last_step),
        _forecast_words(forecast, pace, config.cost.currency, last_step, phase == "ended"),
        _limit_words(run, verdict),
    )
    sentence = " ".join(filter(None, sentences))
    advice = _advice(run, phase, verdict, forecast)
    return Finding(verdict, confidence, sentence, evidence, advice)


def _divergence_words(run: RunFacts, evaluations: Evaluations) -> str:
    """Returns how the run has diverged; empty: it has not."""
    divergence = divergence_of(run.steps["step"], run.steps["loss"])
    if divergence:
        return divergence_sentence(divergence)
    if math.isnan(evaluations.validation_loss[-1]):
        return f"The validation loss after step {int(evaluations.step[-1]):,} is not a number."
    overfit = overfit_of(evaluations.finite)
    if overfit and overfit.state == "both rise" and overfit.rise.rise > DIVERGED_NATS:
        return (
            f"Since step {overfit.lowest_step:,} the validation loss has risen by "
            f"{overfit.rise.rise:.2f} nats and the loss on a training sample by "
            f"{overfit.train_change:.2f}."
        )
    return ""


def _past_its_best(overfit: Overfit, evidence: list[Figure]) -> Finding:
    step = overfit.lowest_step
    if overfit.bleu_rises:
        sentence = (
            f"Not yet, going by the translations: BLEU has risen by {overfit.bleu_change:.1f} "
            f"since step {step:,}, and still rises. The validation loss was lowest there and has "
            f"risen by {overfit.rise.rise:.3f} nats since then, while the training sample's falls: "
            "the model grows too sure of itself, and that will cost translations in time."
        )
        advice = "Train on while BLEU rises, and use the checkpoint with the best BLEU."
        return Finding("not yet", "low", sentence, evidence, advice)
    confidence: Confidence = "high" if overfit.bleu_falls else "medium"
    sentence = (
        f"Yes, and past its best: the validation loss was lowest around step {step:,} and has "
        f"risen by {overfit.rise.rise:.3f} nats since then, while the training sample's still "
        "falls. More training of this kind makes the model worse."
    )
    advice = (
        "Use the best checkpoint; a better model needs more data or more dropout, not more steps "
        f"than about {step:,}."
    )
    return Finding("yes", confidence, sentence, evidence, advice)


def _learned_nothing(evaluations: Evaluations, guessing: float, evidence: list[Figure]) -> Finding:
    sentence = (
        f"Not yet: the validation loss rests at {evaluations.validation_loss[-1]:.2f} nats, and "
        f"guessing among all pieces alike would give {guessing:.2f}: the model has learned little "
        "more than which pieces are frequent."
    )
    advice = (
        "Look whether source and target lines belong together, and try a lower learning rate with "
        "a longer warm-up."
    )
    return Finding("not yet", "high", sentence, evidence, advice)


def _too_early(why: str, evidence: list[Figure]) -> Finding:
    return Finding("too early to say", "none", f"Too early to say: {why}", evidence)


def _opening(verdict: Verdict, forecast: Forecast) -> str:
    if verdict == "yes":
        return "Yes: the validation loss has come to rest."
    if verdict == "too early to say":
        return "Too early to say: the noise of the evaluations hides the trend."
    return "Not yet: the validation loss still falls." if forecast.gain().low > 0 else "Not yet."


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
    return ""


def _advice(run: RunFacts, phase: Phase, verdict: Verdict, forecast: Forecast) -> str:
    if phase == "falling":
        return f"Let the schedule end at step {run.config.training.steps:,}."
    if phase == "ended":
        is_worth_it = forecast.gain().value >= WORTH_NATS
        return "Train anew with more training.steps." if is_worth_it else ""
    if phase == "constant" and verdict == "yes":
        return "Set schedule.kind to cosine or linear in the next run."
    if verdict != "not yet":
        return ""
    if run.attempts and run.attempts[-1].state == "finished":
        return "Train on: set training.steps higher and give the same command again."
    return "Train on."


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
