"""Rolls back to a checkpoint from before the run diverged, with a smaller learning rate."""

import dataclasses

from dragoman.distributed.group import Group
from dragoman.telemetry.events import Incident
from dragoman.training.checkpointing import Checkpointer
from dragoman.training.divergence import (
    Verdict,
    after_rollback,
    rollback_step,
    smaller_loss_scale,
)
from dragoman.training.recorder import Recorder
from dragoman.training.resume import restore
from dragoman.training.state import RunState
from dragoman.training.updater import Updater


def roll_back(
    group: Group,
    updater: Updater,
    checkpointer: Checkpointer,
    recorder: Recorder,
    state: RunState,
    verdict: Verdict,
) -> RunState:
    """Restores and returns the state from which the run goes on; later checkpoints are removed.

    Collective: every rank must call.
    """
    group.pulse.enter("checkpoint")  # which may take longer than a step
    checkpointer.finish()
    # Of all hosts, and only what is whole: everything later is about to be removed.
    own_steps = checkpointer.whole_steps(updater) if group.local_rank == 0 else []
    whole_steps = {step for steps in group.gather(own_steps) for step in steps}
    checkpointer.remove_after(rollback_step(verdict.trusted_step, whole_steps))
    group.gather(None)  # no host finds a checkpoint that another is about to remove
    updater.optimizer.clear()  # before a checkpoint takes up memory as well
    restored = restore(checkpointer.roots, checkpointer.owner, updater, group)
    if restored.step == 0:
        updater.start_over()
    again = dataclasses.replace(
        restored,
        elapsed_s=state.elapsed_s,
        sync=restored.sync or state.sync,  # of no checkpoint: those in use, or none would be saved
        divergence=after_rollback(
            state.divergence, restored.divergence, from_step=state.step, to_step=restored.step
        ),
        loss_scaling=smaller_loss_scale(state.loss_scaling, restored.loss_scaling),
    )
    if again.loss_scaling:
        updater.scaler.load_state_dict(again.loss_scaling)
    factor = again.divergence.rate_factor
    recorder.record_incident(
        Incident(
            state.step,
            "rollback",
            f"{verdict.what}; back to step {again.step:,} with {factor:g} times the learning rate",
            rollback_step=again.step,
            rate_factor=factor,
        )
    )
    return again
