"""Losses and scores over the steps: curves to choose from, and what evaluations find on them."""

from dataclasses import dataclass, replace

import numpy as np

from dragoman.telemetry.events import Evaluated
from scenarios.recipe import SIGNATURES
from scenarios.world import Curve, Floats, Ints, Learning, World

FIRST_LOSS = 9.5
"""Of a model that knows nothing: about the logarithm of the vocabulary."""
BLEU_SENTENCES_LOW = 0.3


def power_law(floor: float, scale: float, exponent: float, warmup: float = 100.0) -> Curve:
    """floor + scale * (step / 1,000)^-exponent. During warm-up from the first loss down to it."""

    def loss(steps: Floats) -> Floats:
        law = floor + scale * (np.maximum(steps, warmup) / 1000) ** -exponent
        share = np.clip(steps / warmup, 0, 1)
        return law + (FIRST_LOSS - law) * (1 - share) ** 2

    return loss


def levelled(curve: Curve, step: float) -> Curve:
    """Falls no more from that step on."""
    return lambda steps: curve(np.minimum(steps, step))


def turning(curve: Curve, step: float, rise_per_1000: float) -> Curve:
    """Rises from that step on, beginning with the value that it has there."""
    return lambda steps: (
        curve(np.minimum(steps, step)) + rise_per_1000 * np.maximum(0.0, steps - step) / 1000
    )


def below(curve: Curve, by: float, more_per_1000: float = 0.0, after: float = 0.0) -> Curve:
    """Lower by a gap that may widen from a step on."""
    return lambda steps: curve(steps) - by - more_per_1000 * np.maximum(0.0, steps - after) / 1000


def exploding(curve: Curve, step: float, level: float, within: float = 60.0) -> Curve:
    """Goes up to `level` from that step on."""
    return lambda steps: (
        curve(np.minimum(steps, step))
        + (level - curve(np.full_like(steps, step))) * np.clip((steps - step) / within, 0, 1)
    )


@dataclass(frozen=True)
class Evaluator:
    """The sentences stay the same during a run, and so does what their choice does to a loss."""

    learning: Learning
    with_errors: bool
    validation_shift: float
    train_shift: float

    @classmethod
    def of(cls, world: World, chance: np.random.Generator) -> "Evaluator":
        shifts = chance.normal(0, world.learning.loss_error, 2)
        return cls(world.learning, world.recorded.errors, shifts[0], shifts[1])

    def evaluate(self, step: int, best: Evaluated | None, chance: np.random.Generator) -> Evaluated:
        learning = self.learning
        at = np.array([float(step)])
        common, own, other = chance.normal(0, learning.wobble, 3) * np.sqrt([0.5, 0.5, 0.5])
        true_loss = float(learning.validation(at)[0])
        loss = true_loss + self.validation_shift + common + own
        train_loss = None
        if learning.train_sample:
            train_loss = float(learning.train_sample(at)[0]) + self.train_shift + common + other
        bleu = None
        if learning.has_bleu:
            exact = learning.bleu_at_floor - learning.bleu_per_nat * (true_loss - learning.floor)
            exact = max(BLEU_SENTENCES_LOW, exact) if np.isfinite(exact) else 0.0
            bleu = max(0.0, exact + float(chance.normal(0, learning.bleu_wobble)))
        is_best = bleu is not None and (best is None or best.bleu is None or bleu > best.bleu)
        evaluated = Evaluated(
            step=step,
            validation_loss=loss,
            train_sample_loss=train_loss,
            bleu=bleu,
            chrf=None if bleu is None else bleu + 28.0,
            bleu_signature=SIGNATURES["bleu_signature"],
            chrf_signature=SIGNATURES["chrf_signature"],
            is_best=is_best,
            seconds=learning.evaluation_s,
            samples=[{"source": "A house.", "translation": "Ein Haus.", "reference": "Ein Haus."}],
        )
        return self._with_errors(evaluated, best) if self.with_errors else evaluated

    def _with_errors(self, evaluated: Evaluated, best: Evaluated | None) -> Evaluated:
        learning, bleu = self.learning, evaluated.bleu
        error = learning.loss_error
        evaluated = replace(
            evaluated,
            validation_loss_error=error,
            train_sample_loss_error=error if learning.train_sample else None,
        )
        if bleu is None:
            return evaluated
        width = 1.96 * learning.bleu_error
        evaluated = replace(evaluated, bleu_low=max(0.0, bleu - width), bleu_high=bleu + width)
        if best is None or best.bleu is None:
            return evaluated
        # Translations of the same sentences differ by less than those of others.
        distance = abs(bleu - best.bleu) / (0.6 * learning.bleu_error)
        p = float(np.exp(-0.717 * distance - 0.416 * distance**2))  # about normal's two tails
        return replace(evaluated, compared_step=best.step, bleu_gain_p=max(0.001, p))


def running_losses(world: World, steps: Ints, chance: np.random.Generator) -> Floats:
    """The training loss of each step: with dropout and label smoothing."""
    learning = world.learning
    at = steps.astype(float)
    if learning.running:
        exact = learning.running(at)
    else:
        exact = 0.9 * (learning.train_sample or learning.validation)(at) + 1.15
    loss = exact + chance.normal(0, learning.running_noise, len(steps))
    for spike, height in learning.spikes.items():
        loss += height * _decay(at - spike, 6.0)
    return loss


def gradient_norms(world: World, steps: Ints, chance: np.random.Generator) -> Floats:
    norms = 0.5 * np.exp(chance.normal(0, 0.12, len(steps)))
    for spike, height in world.learning.spikes.items():
        norms *= 1 + 6 * height * _decay(steps - spike, 3.0)
    norms[np.isin(steps, world.learning.skipped)] = np.inf
    return norms


def _decay(since: Floats | Ints, over: float) -> Floats:
    return np.where(since >= 0, np.exp(-np.maximum(since, 0) / over), 0.0)
