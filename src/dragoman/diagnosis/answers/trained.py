"""Is the model fully trained? Verdicts: "yes" | "not yet" | "too early to say".

Judged by the validation loss after the warm-up and by what more training would bring. That a run
has reached its step limit plays no part. A learning rate that falls to an end of its own makes the
loss fall by itself there, so what more would bring is taken from the losses before that, and a loss
that rests at a rate still high is no end.
"""

import math

import numpy as np

from dragoman.config import Config
from dragoman.diagnosis.answers.loss_spikes import divergence_of, divergence_sentence
from dragoman.diagnosis.answers.overfitting import Overfit, loss_figure, overfit_of
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.learning.convergence import (
    WORTH_NATS,
    Outlook,
    Verdict,
    evaluations_missing,
    outlook_of,
    verdict_of,
)
from dragoman.diagnosis.learning.evaluations import Evaluations, columns_of
from dragoman.diagnosis.learning.more_training import (
    Pace,
    forecast_figures,
    forecast_words,
    pace_of,
)
from dragoman.diagnosis.learning.power_law import LEAST_POINTS
from dragoman.diagnosis.phrasing import count, percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.training.schedule import learning_rate, peak_of

KEY = "trained"
QUESTION = "Is the model fully trained? How can you tell?"

STEADY_SHARE = 0.5
"""Of the peak rate: above it, a loss falls by learning and not because the rate falls."""
AT_END_SHARE = 0.02
"""Of the way from peak to final rate that may be left, for a schedule to be done."""
UNLEARNED_SHARE = 0.55
"""Of the loss of guessing evenly. Who knows how frequent pieces are, and nothing else, is at about
two thirds of it."""
DIVERGED_NATS = 0.3
"""Validation and training sample both risen by this much: what was learned is lost."""


def answer(run: RunFacts) -> Finding:
    every = columns_of(run.evaluations)
    if not len(every):
        return unknown(KEY, QUESTION, "no evaluation has been made, and only those can tell")
    evaluations = every.finite
    evidence = _losses(evaluations)
    if lost := _lost(run, every):
        return Finding(
            KEY,
            QUESTION,
            "not yet",
            "high",
            f"Not yet: the run has diverged. {lost}",
            evidence,
            "Go back to the best checkpoint; start a new run with a lower learning rate or a "
            "longer warm-up.",
        )
    config = run.config
    after = evaluations.where(evaluations.steps >= config.schedule.warmup_steps)
    evidence.append(Figure("evaluations after warm-up", len(after), ""))
    last_step = _last_step(run, evaluations)
    if last_step < config.schedule.warmup_steps:
        left = config.schedule.warmup_steps - last_step
        return _too_early(
            f"the learning rate is still rising, for {count(left, 'more step')}, and the loss of "
            f"a warm-up says nothing about its end. {_about_evaluations(config, left)}",
            evidence,
        )
    overfit = overfit_of(after)
    if overfit.state == "overfitting" and overfit.rise is not None:
        return _best_is_behind(after, overfit, evidence)
    pace = pace_of(run, config)
    steady = is_steady(config, after)
    outlook = outlook_of(after.steps * pace.tokens_per_step, after.validation, after.bleu, steady)
    if outlook is None:
        missing = max(1, LEAST_POINTS - len(after))
        return _too_early(
            f"there {'is' if len(after) == 1 else 'are'} {count(len(after), 'evaluation')} after "
            f"the warm-up, and a trend with its noise needs {LEAST_POINTS}. After "
            f"{count(missing, 'more evaluation')} it can be said.",
            evidence,
        )
    evidence += forecast_figures(outlook, pace, config, last_step)
    guessing = math.log(_vocabulary(run))
    if verdict_of(outlook)[0] == "yes" and after.validation.min() > UNLEARNED_SHARE * guessing:
        return _learned_nothing(after, guessing, evidence)
    return _judged(run, config, outlook, pace, last_step, evidence)


def _judged(
    run: RunFacts,
    config: Config,
    outlook: Outlook,
    pace: Pace,
    last_step: int,
    evidence: list[Figure],
) -> Finding:
    verdict, confidence = verdict_of(outlook)
    gain = outlook.gain()
    advice = ""
    why = ""
    rate_left = rate_left_of(config, last_step)
    is_schedule_done = rate_left is not None and rate_left <= AT_END_SHARE
    if rate_left is not None and not is_schedule_done:
        why = (
            f" The {config.schedule.kind} schedule has {percent(rate_left)} of the way down still "
            "before it, and the loss falls by itself as the rate does."
        )
        if verdict != "not yet":
            verdict, confidence = "not yet", "medium"
        advice = f"Let the schedule end at step {config.training.steps:,}."
    elif is_schedule_done:
        why = f" This {config.schedule.kind} schedule has come to its end, and its rate with it."
        if outlook.is_at_rest and verdict != "yes":
            verdict, confidence = "yes", "medium"
        advice = "" if gain.value < WORTH_NATS else "Train anew with more training.steps."
    elif config.schedule.kind == "constant" and verdict == "yes":
        confidence = "medium"
        why = " That is so at a constant rate; a last stretch with a falling one mostly adds some."
        advice = "Set schedule.kind to cosine or linear in the next run."
    elif verdict == "not yet":
        advice = _go_on(run)
    if verdict == "too early to say":
        missing = evaluations_missing(outlook)
        why = f" About {count(missing, 'more evaluation')} would settle it."
    if verdict == "not yet" and gain.low <= WORTH_NATS and outlook.bleu_still_rises:
        why = " The validation loss is nearly at rest, but BLEU still rises clearly."
    return Finding(
        KEY,
        QUESTION,
        verdict,
        confidence,
        f"{_opening(verdict, outlook)}{why} "
        f"{forecast_words(outlook, pace, config, last_step, is_schedule_done)}"
        f"{_limit_words(run, verdict)}",
        evidence,
        advice,
    )


def _opening(verdict: Verdict, outlook: Outlook) -> str:
    if verdict == "yes":
        return "Yes: the validation loss has come to rest."
    if verdict == "too early to say":
        return "Too early to say: the noise of the evaluations hides the trend."
    return "Not yet: the validation loss still falls." if outlook.gain().low > 0 else "Not yet."


def _go_on(run: RunFacts) -> str:
    if run.attempts and run.attempts[-1].state == "finished":
        return "Train on: set training.steps higher and give the same command again."
    return "Train on."


def rate_left_of(config: Config, step: int) -> float | None:
    """Of the way from the peak to the final rate; None: the schedule has no end of its own."""
    schedule = config.schedule
    if schedule.kind not in ("cosine", "linear") or config.training.steps is None:
        return None
    rate = learning_rate(schedule, config.model.width, config.training.steps)
    way = schedule.peak - schedule.final
    return (rate(max(1, step)) - schedule.final) / way if way > 0 else 0.0


def is_steady(config: Config, evaluations: Evaluations) -> np.typing.NDArray[np.bool_]:
    """Where the rate was high, for schedules that end; everywhere, where that leaves too few."""
    all_of_them = np.ones(len(evaluations), dtype=bool)
    if rate_left_of(config, 1) is None:
        return all_of_them
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    peak = peak_of(config.schedule, config.model.width, config.training.steps).rate
    steady = np.array([rate(int(step)) >= STEADY_SHARE * peak for step in evaluations.steps])
    return steady if steady.sum() >= LEAST_POINTS else all_of_them


def _lost(run: RunFacts, evaluations: Evaluations) -> str:
    """How the run has diverged; empty: it has not."""
    steps = run.steps
    divergence = divergence_of(steps["step"], steps["loss"])
    if divergence:
        return divergence_sentence(divergence)
    if math.isnan(evaluations.validation[-1]):
        return f"The validation loss after step {int(evaluations.steps[-1]):,} is not a number."
    finite = evaluations.finite
    found = overfit_of(finite)
    if found.rise and found.state == "both rise" and found.rise.rise > DIVERGED_NATS:
        return (
            f"Since step {int(finite.steps[found.rise.lowest]):,} the validation loss has risen by "
            f"{found.rise.rise:.2f} nats and the loss on a training sample by "
            f"{found.train_change:.2f}."
        )
    return ""


def _best_is_behind(evaluations: Evaluations, overfit: Overfit, evidence: list[Figure]) -> Finding:
    assert overfit.rise is not None
    step = int(evaluations.steps[overfit.rise.lowest])
    if overfit.bleu_rises:
        return Finding(
            KEY,
            QUESTION,
            "not yet",
            "low",
            f"Not yet, going by the translations: BLEU has risen by {overfit.bleu_change:.1f} "
            f"since step {step:,}, and still rises. The validation loss was lowest there and has "
            f"risen by {overfit.rise.rise:.3f} nats since then, while the training sample's falls: "
            "the model grows too sure of itself, and that will cost translations in time.",
            evidence,
            "Train on while BLEU rises, and use the checkpoint with the best BLEU.",
        )
    return Finding(
        KEY,
        QUESTION,
        "yes",
        "high" if overfit.bleu_falls else "medium",
        f"Yes, and past its best: the validation loss was lowest around step {step:,} and has "
        f"risen by {overfit.rise.rise:.3f} nats since then, while the training sample's still "
        "falls. More training of this kind makes the model worse.",
        evidence,
        f"Use the best checkpoint; a better model needs more data or more dropout, not more steps "
        f"than about {step:,}.",
    )


def _vocabulary(run: RunFacts) -> int:
    passport = run.record.passport
    return passport.vocabulary if passport else run.config.tokenizer.vocabulary


def _learned_nothing(evaluations: Evaluations, guessing: float, evidence: list[Figure]) -> Finding:
    return Finding(
        KEY,
        QUESTION,
        "not yet",
        "high",
        f"Not yet: the validation loss rests at {evaluations.validation[-1]:.2f} nats, and "
        f"guessing among all pieces alike would give {guessing:.2f}: the model has learned little "
        "more than which pieces are frequent.",
        evidence,
        "Look whether source and target lines belong together, and try a lower learning rate with "
        "a longer warm-up.",
    )


def _too_early(why: str, evidence: list[Figure]) -> Finding:
    return Finding(
        KEY, QUESTION, "too early to say", "none", f"Too early to say: {why.strip()}", evidence
    )


def _last_step(run: RunFacts, evaluations: Evaluations) -> int:
    done = int(run.steps["step"][-1]) if len(run.steps) else 0
    return max(done, int(evaluations.steps[-1]) if len(evaluations) else 0)


def _about_evaluations(config: Config, warmup_left: int) -> str:
    steps = warmup_left + LEAST_POINTS * config.evaluation.every_steps
    return f"After about {count(steps, 'more step')} it can be said."


def _losses(evaluations: Evaluations) -> list[Figure]:
    if not len(evaluations):
        return []
    last, lowest = -1, int(np.argmin(evaluations.validation))
    found = []
    for name, place in (("validation loss", last), ("lowest validation loss", lowest)):
        value, error = evaluations.validation[place], evaluations.validation_error[place]
        found.append(
            loss_figure(name, value, error, f"after step {int(evaluations.steps[place]):,}")
        )
    return found


def _limit_words(run: RunFacts, verdict: Verdict) -> str:
    """A run that ended at its limit is taken for trained by many."""
    attempt = run.attempts[-1] if run.attempts else None
    if attempt is None or attempt.state != "finished" or verdict == "yes":
        return ""
    if not attempt.ends or attempt.ends[0].event.cause not in ("steps", "epochs", "hours"):
        return ""
    return f" The run ended because {attempt.reason}, which says nothing about the model."
