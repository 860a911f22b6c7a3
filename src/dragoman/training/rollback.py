"""Going back to a checkpoint from before numbers went wrong, with a smaller learning rate."""

import dataclasses

import torch

from dragoman.model.transformer import Transformer
from dragoman.telemetry.events import Incident
from dragoman.training.divergence import (
    Verdict,
    after_rollback,
    smaller_loss_scale,
    step_to_go_back_to,
)
from dragoman.training.setup import Training, restore
from dragoman.training.state import RunState
from dragoman.training.tensors import load_weights


def roll_back(training: Training, state: RunState, verdict: Verdict) -> RunState:
    """Forget what came after the trouble began. Collective: every rank must call."""
    group, saving, updater = training.group, training.saving, training.updater
    group.pulse.enter("checkpoint")  # which may take longer than a step
    saving.finish()
    # Of all hosts, and only what is whole: everything later is about to be removed.
    whole_steps = group.gather(saving.whole_steps(training.model) if group.local_rank == 0 else [])
    chosen = step_to_go_back_to(
        verdict.trusted_step, {step for steps in whole_steps for step in steps}
    )
    saving.forget_after(chosen)
    group.gather(None)  # no host finds a checkpoint that another is about to remove
    updater.optimizer.state.clear()
    restored = restore(saving.roots, saving.owner, training.model, updater, group)
    if restored.step == 0:
        torch.manual_seed(training.config.training.seed)
        first = Transformer(training.config.model, training.tokenizer.size)
        load_weights(training.model, first.state_dict())
    again = dataclasses.replace(
        restored,
        elapsed_s=state.elapsed_s,
        numbers=after_rollback(state.numbers, restored.numbers),
        loss_scaling=smaller_loss_scale(state.loss_scaling, restored.loss_scaling),
    )
    if again.loss_scaling:
        updater.scaler.load_state_dict(again.loss_scaling)
    what = (
        f"{verdict.what}; back to step {again.step:,} with "
        f"{again.numbers.rate_factor:g} times the learning rate"
    )
    training.report_incident(
        Incident(
            state.step,
            "rollback",
            what,
            rollback_step=again.step,
            rate_factor=again.numbers.rate_factor,
        )
    )
    return again
