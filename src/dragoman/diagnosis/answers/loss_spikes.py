"""Where the training loss jumped, ran away or could not be computed. Unasked, and often the cause.

The running training loss is compared with itself only, so it does no harm that dropout and label
smoothing are in it. Verdicts: "diverged" | "spikes" | "skipped updates".
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.diagnosis.findings import Confidence, Figure, Finding
from dragoman.diagnosis.learning.power_law import Numbers
from dragoman.diagnosis.phrasing import count, listed
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.training.divergence import RISE_NATS, SPREADS

QUESTION = "Did the loss jump or run away?"

BLOCK = 50
"""Steps whose median is the level: a jump of less than half of them does not move it."""
SPIKE_NATS = 0.5
"""How far above the level a loss must be at least, whatever its spread."""
SPIKE_SPREADS = 8.0
"""A run has up to a million steps, and the noise of single batches has long tails."""
LOST_STEPS = 10
"""Losses in a row, at the end, that are no numbers: fewer are skipped updates that may heal."""
NAMED = 6
"""Spikes that the sentence names."""
_NORMAL = 1.4826

Steps: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spike:
    first_step: int
    last_step: int
    height: float
    """Nats above the level before it."""


@dataclass(frozen=True)
class Divergence:
    since_step: int
    from_loss: float
    to_loss: float
    """Not finite: at the end there is no number any more."""


def finding(run: RunFacts) -> Finding | None:
    """None: nothing of the kind."""
    steps = run.steps
    numbers, losses = steps["step"], steps["loss"]
    skipped = numbers[~steps["updated"].astype(bool)]
    divergence = divergence_of(numbers, losses)
    before = numbers < divergence.since_step if divergence else np.ones(len(numbers), dtype=bool)
    spikes = spikes_of(numbers[before], losses[before])
    if not (spikes or divergence or len(skipped)):
        return None
    evidence = [
        Figure("loss spikes", len(spikes), ""),
        Figure("skipped updates", len(skipped), "steps", note=_skipped_note(skipped)),
    ]
    sentences = []
    if divergence:
        sentences.append(divergence_sentence(divergence))
        evidence += [
            Figure("diverged since step", divergence.since_step, "steps"),
            Figure("training loss before", divergence.from_loss, "nats"),
            Figure("training loss at the end", _number(divergence.to_loss), "nats"),
        ]
    if spikes:
        highest = max(spikes, key=lambda spike: spike.height)
        sentences.append(
            f"The training loss jumped and came back {_times(spikes)}; the highest jump was by "
            f"{highest.height:.2f} nats at step {highest.first_step:,} and lasted "
            f"{count(highest.last_step - highest.first_step + 1, 'step')}."
        )
        evidence.append(
            Figure(
                "highest spike",
                highest.height,
                "nats",
                note=f"steps {highest.first_step:,} to {highest.last_step:,}",
            )
        )
    if len(skipped):
        what = "update was" if len(skipped) == 1 else "updates were"
        sentences.append(
            f"{len(skipped):,} {what} skipped because loss or gradients were not finite"
            f"{_where(skipped)}."
        )
    verdict = "diverged" if divergence else "spikes" if spikes else "skipped updates"
    confidence: Confidence = "high" if divergence or len(skipped) else "medium"
    return Finding(
        key="spikes",
        question=QUESTION,
        verdict=verdict,
        confidence=confidence,
        sentence=" ".join(sentences),
        evidence=evidence,
        advice=_advice(run, verdict, spikes, len(skipped), len(numbers)),
    )


def divergence_sentence(divergence: Divergence) -> str:
    if math.isfinite(divergence.to_loss):
        return (
            f"The training loss ran away after step {divergence.since_step:,}, from "
            f"{divergence.from_loss:.2f} to {divergence.to_loss:.2f} nats, and did not come back."
        )
    return f"The training loss has not been a number since step {divergence.since_step:,}."


def spikes_of(steps: Steps, losses: Numbers) -> list[Spike]:
    """Jumps that came back. Losses fall at first, so a loss is compared with the higher one of its
    own level and the level before. What is not a number counts as a skipped update, not here."""
    finite = np.isfinite(losses)
    steps, losses = steps[finite], losses[finite]
    levels = _levels(losses)
    if len(levels) < 3:
        return []
    block = np.minimum(np.arange(len(losses)) // BLOCK, len(levels) - 1)
    above = losses - np.maximum(levels[block], levels[np.maximum(0, block - 1)])
    usual = block > 0  # the first level has none before it
    spread = _NORMAL * float(np.median(np.abs(losses - levels[block])[usual]))
    rows = np.flatnonzero(usual & (above > max(SPIKE_NATS, SPIKE_SPREADS * spread)))
    if not len(rows):
        return []
    apart = np.flatnonzero(np.diff(rows) > BLOCK) + 1
    return [
        Spike(int(steps[group[0]]), int(steps[group[-1]]), float(above[group].max()))
        for group in np.split(rows, apart)
        # One that reaches to the end has not come back, or nobody knows yet.
        if group[-1] < len(losses) - 1
    ]


def divergence_of(steps: Steps, losses: Numbers) -> Divergence | None:
    """Whether the loss is, at the end, far above the lowest level that it ever had."""
    finite = np.flatnonzero(np.isfinite(losses))
    lost = len(losses) - 1 - finite[-1] if len(finite) else len(losses)
    if lost >= LOST_STEPS or (lost and not len(finite)):
        since = int(steps[finite[-1] + 1 if len(finite) else 0])
        return Divergence(since, float(losses[finite[-1]]) if len(finite) else math.nan, math.nan)
    steps, losses = steps[finite], losses[finite]
    levels = _levels(losses)
    if len(levels) < 3:
        return None
    lowest = int(np.argmin(levels))
    own = losses[lowest * BLOCK : (lowest + 1) * BLOCK]
    spread = _NORMAL * float(np.median(np.abs(own - levels[lowest])))
    allowed = float(levels[lowest]) + RISE_NATS + SPREADS * spread
    if levels[-1] <= allowed:
        return None
    calm = int(np.flatnonzero(levels <= allowed)[-1])
    since = int(steps[min(len(steps) - 1, (calm + 1) * BLOCK)])
    return Divergence(since, float(levels[lowest]), float(levels[-1]))


def _levels(losses: Numbers) -> Numbers:
    """Medians of blocks; the last block reaches to the end."""
    blocks = len(losses) // BLOCK
    if not blocks:
        return np.empty(0)
    levels = np.median(losses[: blocks * BLOCK].reshape(blocks, BLOCK), axis=1)
    levels[-1] = np.median(losses[(blocks - 1) * BLOCK :])
    return levels


def _advice(run: RunFacts, verdict: str, spikes: list[Spike], skipped: int, steps: int) -> str:
    schedule = run.config.schedule
    lower = "schedule.scale" if schedule.kind == "noam" else "schedule.peak"
    if verdict == "diverged":
        return (
            "Go back to the best checkpoint and start a new run from these settings with half of "
            f"{lower} or a longer schedule.warmup_steps, and set optimizer.clip_norm to 1."
        )
    if len(spikes) > 3 and not run.config.optimizer.clip_norm:
        return "Set optimizer.clip_norm to 1: it bounds what a single bad batch can do."
    if skipped > 0.01 * steps:
        return f"More than 1 % of the updates were skipped: lower {lower}, or use bf16 or fp32."
    return ""


def _times(spikes: list[Spike]) -> str:
    if len(spikes) == 1:
        return "once"
    named = listed([f"{spike.first_step:,}" for spike in spikes[:NAMED]])
    more = ", among others" if len(spikes) > NAMED else ""
    return f"{len(spikes):,} times, at steps {named}{more}"


def _where(skipped: Steps) -> str:
    if len(skipped) == 1:
        return f", at step {int(skipped[0]):,}"
    return f", between steps {int(skipped[0]):,} and {int(skipped[-1]):,}"


def _skipped_note(skipped: Steps) -> str:
    if not len(skipped):
        return ""
    breaks = np.flatnonzero(np.diff(skipped) != 1) + 1
    longest = max(len(group) for group in np.split(skipped, breaks))
    return f"at most {longest:,} in a row"


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "not a number"
