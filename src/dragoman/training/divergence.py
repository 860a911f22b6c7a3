"""Detects divergence: the result of a step comes in, and what to do about it goes out. Pure.

Two things are watched. Non-finite loss or gradients: the update is skipped, a bounded number of
times in a row. A loss that explodes: more than half of the recent steps are far above the lowest
level that the run has had. Either leads to a rollback to the newest checkpoint from before it
began, from where the run repeats the very same batches with half the learning rate; after some
rollbacks it stops with advice.

When it began: a gradient that is not finite shows in its own step, so all is well up to the last
step whose loss was at its usual height. If such trouble comes again soon after a rollback, that
checkpoint was no good, and the run goes to the one before it. A loss that explodes shows late.

Everything is a function of what all ranks see alike, so all come to the same verdict; and of
`DivergenceState`, which checkpoints keep, so a resumed run comes to it at the same step.
"""

import dataclasses
import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, Strict

from dragoman.config import MOST_STEPS, TrainingSettings, above, between

Count = Annotated[int, Strict(), between(0, MOST_STEPS)]
Loss = Annotated[float, Strict(), between(-1e308, 1e308)]

WINDOW = 100
"""Losses of which the median is the level. A spike that heals within half of them is left alone: it
costs less than a rollback, which repeats all steps since a checkpoint."""
RISE_NATS = 1.0
"""How far the level must have risen: perplexity is e times as high. Runs that learned never rose by
more than 0.1, and by 0.5 with a rate that was ramped up to twenty times the best; those that were
lost rose by 1.2 up to thousands (digits language, ten curves, 2026-11)."""
SPREADS = 2.0
"""What noise adds to that. The median of 100 losses wavers by an eighth of their spread, and over a
million steps the lowest and the highest of them are about one spread apart; twice that, since noise
is not always normal."""
FIRST_SPREAD = 0.25
"""Of the first loss, as a share of it: one loss alone shows none. A run that stays half as high
again as it began, and a nat more, is lost."""
RATE_FACTOR = 0.5
"""Of each rollback. Smaller steps are what keeps a run from taking the same way again."""

# The median absolute deviation of normal noise, times this, is its standard deviation.
_NORMAL = 1.4826


@dataclass(frozen=True)
class DivergenceState:
    """What a run remembers of its losses; part of its `RunState`, of JSON values."""

    skipped: Count = 0
    """Updates in a row, up to the last step, that were not made."""
    recent: Annotated[tuple[Loss, ...], Field(max_length=WINDOW)] = ()
    """The newest finite losses, oldest first."""
    level: Loss | None = None
    """The lowest median of a full window, and the first loss of all; None: not known yet."""
    spread: Annotated[float, Strict(), between(0, 1e308)] = 0.0
    """Standard deviation of the losses around that level, when it was reached."""
    calm_step: Count = 0
    """The last step without a sign of divergence in the level of the losses."""
    quiet_step: Count = 0
    """The last step that was updated, with a loss of its own that was no sign of divergence."""
    rollbacks: Count = 0
    rolled_back_from: Count = 0
    """The step after which the run rolled back last; 0: it never did."""
    rolled_back_to: Count = 0
    rate_factor: Annotated[float, Strict(), above(0, 1)] = 1.0
    """What the schedule's learning rate is multiplied by."""

    @property
    def trusted_step(self) -> int:
        """Returns the step up to which checkpoints hold nothing of a loss that explodes now.

        It is noticed half a window later, and whatever leads to it has begun before it shows.
        """
        return max(0, self.calm_step - WINDOW)


class Verdict(NamedTuple):
    action: Literal["go on", "skip", "roll back", "stop"]
    what: str = ""
    """What happened, as a sentence; when to stop, what to do as well."""
    trusted_step: int = 0
    """When to roll back: all later steps are suspect, and so are their checkpoints."""


def judge(
    state: DivergenceState, step: int, loss: float, updated: bool, settings: TrainingSettings
) -> tuple[DivergenceState, Verdict]:
    """Returns what to remember and what to do after a step.

    `updated`: gradients were finite, and the weights were changed.
    """
    if not updated or not math.isfinite(loss):
        state = dataclasses.replace(state, skipped=state.skipped + 1)
        what = f"{'gradients were' if math.isfinite(loss) else 'the loss was'} not finite"
        if state.skipped <= settings.max_skipped:
            return state, Verdict("skip", f"{what}; the update was skipped")
        what = f"{what} {state.skipped} times in a row"
        return state, _roll_back_or_stop(state, what, last_good_step(state, step), settings)

    state = _after_loss(state, step, loss)
    now = _median(state.recent)
    if state.level is None or loss <= state.level + _allowed_rise(state) / 2:
        state = dataclasses.replace(state, quiet_step=step)
    if state.level is None or now is None or now <= state.level + _allowed_rise(state) / 2:
        return dataclasses.replace(state, calm_step=step), Verdict("go on")
    if now <= state.level + _allowed_rise(state):
        return state, Verdict("go on")
    what = f"the loss has exploded from {state.level:.2f} to {now:.2f}, median of {WINDOW} steps"
    return state, _roll_back_or_stop(state, what, state.trusted_step, settings)


def last_good_step(state: DivergenceState, step: int) -> int:
    """Returns the step up to which checkpoints hold nothing of gradients that are not finite in
    this one: before a checkpoint that the run has gone back to in vain."""
    good = state.quiet_step or state.trusted_step  # checkpoints of older versions lack the former
    if state.rollbacks and step <= state.rolled_back_from + WINDOW:
        good = min(good, max(0, state.rolled_back_to - 1))
    return good


def after_rollback(
    now: DivergenceState, restored: DivergenceState, from_step: int, to_step: int
) -> DivergenceState:
    """Returns what the run goes on with: `restored` is of the checkpoint, from before `now`."""
    return dataclasses.replace(
        restored,
        rolled_back_from=from_step,
        rolled_back_to=to_step,
        rollbacks=now.rollbacks + 1,
        rate_factor=now.rate_factor * RATE_FACTOR,
    )


def rollback_step(trusted_step: int, saved_steps: Collection[int]) -> int:
    """Returns the checkpoint to take; 0: none, and the run starts over from its initial weights.

    Where all that can be trusted is gone, the oldest is the least suspect.
    """
    trusted = [step for step in saved_steps if step <= trusted_step]
    if trusted or trusted_step == 0:
        return max(trusted, default=0)
    return min(saved_steps, default=0)


def smaller_loss_scale(now: Mapping[str, float], restored: Mapping[str, float]) -> dict[str, float]:
    """Returns the state of torch's GradScaler after a rollback, from both of its states (fp16).

    Skipped updates have halved the scale already, and the checkpoint's would have to go all that
    way again.
    """
    if not restored:
        return dict(now)
    return {**restored, "scale": min(restored["scale"] * RATE_FACTOR, now["scale"])}


def _after_loss(state: DivergenceState, step: int, loss: float) -> DivergenceState:
    recent = (*state.recent, loss)[-WINDOW:]
    level, spread = state.level, state.spread
    if step == 1:
        # A run that explodes at once never has a level to fall from, but it began better: with
        # weights that have learned nothing and guess evenly.
        level, spread = loss, FIRST_SPREAD * loss
    now = _median(recent)
    if now is not None and (level is None or now < level):
        level = now
        spread = _NORMAL * statistics.median(abs(one - now) for one in recent)
    return dataclasses.replace(state, skipped=0, recent=recent, level=level, spread=spread)


def _median(recent: Collection[float]) -> float | None:
    """Returns the median of a full window; None: there are too few losses."""
    return statistics.median(recent) if len(recent) == WINDOW else None


def _allowed_rise(state: DivergenceState) -> float:
    return RISE_NATS + SPREADS * state.spread


def _roll_back_or_stop(
    state: DivergenceState, what: str, trusted_step: int, settings: TrainingSettings
) -> Verdict:
    if state.rollbacks < settings.max_rollbacks:
        return Verdict("roll back", what, trusted_step)
    return Verdict(
        "stop",
        f"{what}, after {state.rollbacks} rollbacks of at most training.max_rollbacks = "
        f"{settings.max_rollbacks}, with {state.rate_factor:g} of the schedule's learning rate; "
        "start a new run with a lower schedule.peak (noam: schedule.scale), a longer "
        "schedule.warmup_steps or an optimizer.clip_norm of 1, and inspect the training pairs "
        f"after step {trusted_step:,}",
        trusted_step,
    )
