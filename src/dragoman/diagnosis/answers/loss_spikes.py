"""Did the training loss jump, diverge or become non-finite? Often the cause of other trouble.

Verdicts: "diverged" | "spikes" | "skipped updates".
"""

import math

import numpy as np

from dragoman.diagnosis.answers.unhealthy import MANY_SKIPPED
from dragoman.diagnosis.commands import train_command
from dragoman.diagnosis.findings import Advice, Confidence, Figure, Finding
from dragoman.diagnosis.learning.instability import (
    Divergence,
    Spike,
    Steps,
    divergence_of,
    spikes_of,
)
from dragoman.diagnosis.learning.level import SURPRISE
from dragoman.diagnosis.learning.remedies import another_precision, lower_the_rate, use_best
from dragoman.diagnosis.phrasing import count, listed, percent
from dragoman.diagnosis.run.facts import RunFacts

NAMED = 6
"""Spikes that the sentence names."""
SOME_SPIKES = 3
SOME_SKIPPED = 0.01
"""Of all updates: fewer are harmless."""


def answer(run: RunFacts) -> Finding | None:
    """Returns None for a run with none of these."""
    steps, losses = run.steps["step"], run.steps["loss"]
    skipped = steps[~run.steps["updated"].astype(bool)]
    divergence = divergence_of(steps, losses)
    before = steps < divergence.since_step if divergence else slice(None)
    spikes = spikes_of(steps[before], losses[before])
    if not (spikes or divergence or len(skipped)):
        return None
    evidence = [
        Figure("loss spikes", len(spikes), ""),
        Figure("skipped updates", len(skipped), "steps", note=_skipped_note(skipped)),
    ]
    sentences = []
    if divergence:
        sentences.append(divergence_sentence(divergence))
        at_end = divergence.to_loss if math.isfinite(divergence.to_loss) else "not a number"
        evidence += [
            Figure("diverged since step", divergence.since_step, "steps"),
            Figure("training loss before", divergence.from_loss, "nats"),
            Figure("training loss at the end", at_end, "nats"),
        ]
    if spikes:
        highest = max(spikes, key=lambda spike: spike.height)
        first, last = highest.first_step, highest.last_step
        sentences.append(
            f"The training loss jumped and came back {_times(spikes)}; the highest jump was by "
            f"{highest.height:.2f} nats ({SURPRISE}) at step {first:,} and lasted "
            f"{count(last - first + 1, 'step')}."
        )
        note = f"steps {first:,} to {last:,}"
        evidence.append(Figure("highest spike", highest.height, "nats", note=note))
    if len(skipped):
        what = "update was" if len(skipped) == 1 else "updates were"
        where = f"at step {skipped[0]:,}"
        if len(skipped) > 1:
            where = f"between steps {skipped[0]:,} and {skipped[-1]:,}"
        share = len(skipped) / len(steps)
        evidence.append(Figure("skipped updates, of all", share, "share"))
        sentences.append(
            f"{len(skipped):,} {what} skipped because loss or gradients were not finite "
            f"({percent(share)} of all), {where}."
        )
    many = len(skipped) > MANY_SKIPPED * len(steps)
    calm = "spikes" if spikes and not many else "skipped updates"
    verdict = "diverged" if divergence else calm
    confidence: Confidence = "high" if divergence or len(skipped) else "medium"
    advice = _advice(run, verdict, len(spikes), len(skipped))
    plain = _plain(verdict, len(spikes), len(skipped) / max(1, len(steps)))
    return Finding(verdict, confidence, " ".join(sentences), evidence, advice, plain)


def divergence_sentence(divergence: Divergence) -> str:
    if math.isfinite(divergence.to_loss):
        return (
            f"The training loss ran away after step {divergence.since_step:,}, from "
            f"{divergence.from_loss:.2f} to {divergence.to_loss:.2f} nats ({SURPRISE}), and did "
            "not come back."
        )
    return f"The training loss has not been a number since step {divergence.since_step:,}."


def _advice(run: RunFacts, verdict: str, spikes: int, skipped: int) -> list[Advice]:
    if verdict == "diverged":
        return [
            lower_the_rate(run, "smaller steps keep the loss from running away"),
            *use_best(run, "it is the best that is kept"),
        ]
    if skipped > SOME_SKIPPED * len(run.steps):
        return [
            *another_precision(run, "its numbers do not overflow"),
            lower_the_rate(run, "more than 1 % of the updates were skipped"),
        ]
    if spikes > SOME_SPIKES and not run.config.optimizer.clip_norm:
        settings: dict[str, object] = {"optimizer.clip_norm": 1.0}
        return [
            Advice(
                "Start a new run with clipped gradients: it bounds what one bad batch can do.",
                train_command(run, settings, new_run=True),
            )
        ]
    return []


def _plain(verdict: str, spikes: int, skipped: float) -> str:
    if verdict == "diverged":
        return "Yes: the training went off the rails and did not recover."
    if verdict == "spikes":
        return f"The training stumbled {count(spikes, 'time')} and recovered each time."
    if skipped > MANY_SKIPPED:
        return (
            f"{percent(skipped)} of the training steps failed and were thrown away: that is a lot."
        )
    return "A few training steps failed and were left out, which is harmless."


def _times(spikes: list[Spike]) -> str:
    if len(spikes) == 1:
        return "once"
    named = listed([f"{spike.first_step:,}" for spike in spikes[:NAMED]])
    more = ", among others" if len(spikes) > NAMED else ""
    return f"{len(spikes):,} times, at steps {named}{more}"


def _skipped_note(skipped: Steps) -> str:
    if not len(skipped):
        return ""
    runs = np.split(skipped, np.flatnonzero(np.diff(skipped) != 1) + 1)
    return f"at most {max(map(len, runs)):,} in a row"
