"""Did the training loss jump, diverge or become non-finite? Often the cause of other trouble.

Verdicts: "diverged" | "spikes" | "skipped updates".
"""

import math

import numpy as np

from dragoman.diagnosis.findings import Confidence, Figure, Finding
from dragoman.diagnosis.learning.instability import (
    Divergence,
    Spike,
    Steps,
    divergence_of,
    spikes_of,
)
from dragoman.diagnosis.phrasing import count, listed
from dragoman.diagnosis.run.facts import RunFacts

NAMED = 6
"""Spikes that the sentence names."""


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
            f"{highest.height:.2f} nats at step {first:,} and lasted "
            f"{count(last - first + 1, 'step')}."
        )
        note = f"steps {first:,} to {last:,}"
        evidence.append(Figure("highest spike", highest.height, "nats", note=note))
    if len(skipped):
        what = "update was" if len(skipped) == 1 else "updates were"
        where = f"at step {skipped[0]:,}"
        if len(skipped) > 1:
            where = f"between steps {skipped[0]:,} and {skipped[-1]:,}"
        sentences.append(
            f"{len(skipped):,} {what} skipped because loss or gradients were not finite, {where}."
        )
    verdict = "diverged" if divergence else "spikes" if spikes else "skipped updates"
    confidence: Confidence = "high" if divergence or len(skipped) else "medium"
    advice = _advice(run, verdict, len(spikes), len(skipped))
    return Finding(verdict, confidence, " ".join(sentences), evidence, advice)


def divergence_sentence(divergence: Divergence) -> str:
    if math.isfinite(divergence.to_loss):
        return (
            f"The training loss ran away after step {divergence.since_step:,}, from "
            f"{divergence.from_loss:.2f} to {divergence.to_loss:.2f} nats, and did not come back."
        )
    return f"The training loss has not been a number since step {divergence.since_step:,}."


def _advice(run: RunFacts, verdict: str, spikes: int, skipped: int) -> str:
    rate = "schedule.scale" if run.config.schedule.kind == "noam" else "schedule.peak"
    if verdict == "diverged":
        return (
            "Go back to the best checkpoint and start a new run from these settings with half of "
            f"{rate} or a longer schedule.warmup_steps, and set optimizer.clip_norm to 1."
        )
    if spikes > 3 and not run.config.optimizer.clip_norm:
        return "Set optimizer.clip_norm to 1: it bounds what a single bad batch can do."
    if skipped > 0.01 * len(run.steps):
        return f"More than 1 % of the updates were skipped: lower {rate}, or use bf16 or fp32."
    return ""


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
