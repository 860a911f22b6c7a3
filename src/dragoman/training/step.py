"""One update of the weights, and what all ranks agree on in it."""

import dataclasses
import time
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.batches.amounts import Amounts
from dragoman.batches.loader import Loader
from dragoman.distributed.devices import memory_peak_bytes
from dragoman.distributed.group import Group
from dragoman.model.size import training_flops
from dragoman.telemetry.events import StepDone
from dragoman.training.interruption import Interruption
from dragoman.training.observer import RankParts
from dragoman.training.out_of_memory import smaller_pieces
from dragoman.training.setup import Training
from dragoman.training.state import RunState


class Taken(NamedTuple):
    """A step, and what all ranks have agreed on in it."""

    state: RunState
    done: StepDone
    interrupted: bool
    """Any rank was asked to stop."""
    save_is_due: bool
    save_can_begin: bool
    """None is in flight on rank 0."""
    parts_before: list[RankParts]
    """Of the step before, by rank; empty where there was none."""


def take_step(
    training: Training,
    state: RunState,
    loader: Loader,
    interruption: Interruption,
    before: StepDone | None,
) -> Taken:
    """Takes one step; `before` is this rank's event of the last one, if there was one.

    Collective: every rank must call.
    """
    group, updater = training.group, training.updater
    group.pulse.enter("data", state.step + 1)
    training.traffic.begin_step()
    begun = time.perf_counter()
    work = loader.next()
    waited_s = time.perf_counter() - begun
    pieces = 1
    while True:
        gradients = updater.gradients(work, pieces)
        group.pulse.enter("agreement")
        # The update of the step before came after its message.
        seconds = time.perf_counter() - begun + updater.update_s
        # One small message, before the weights are touched, tells everyone the loss, rank 0's
        # clock, whether anyone wants to stop or has run out of memory, whether to save, and where
        # each rank's time went in the step before: 56 bytes a rank.
        loss_sum, step_s, wishes, short, save_is_due, saver_is_busy, *parts_s = group.sums(
            [
                gradients.loss_sum,
                seconds if group.leads else 0.0,
                float(interruption.asked),
                float(gradients.ran_out),
                float(group.leads and training.saving.is_due(state, seconds)),
                float(group.leads and training.saving.is_busy),
                *_own_parts(before, group),
            ]
        )
        if not short:
            break
        pieces = smaller_pieces(training, work, pieces, gradients.ran_out)
    stalled_s = training.saving.wait_until_copied()  # the update changes what is being copied
    rate = training.rate(work.step) * state.numbers.rate_factor
    update = updater.update(rate)
    state = state.after_step(work.tokens, step_s)
    if scaling := updater.scaler.state_dict():
        state = dataclasses.replace(state, loss_scaling=scaling)
    seconds = time.perf_counter() - begun
    parts = {
        "data": waited_s,
        **gradients.parts_s,
        "checkpoint": stalled_s,
        "optimizer": updater.update_s,
    }
    done = StepDone(
        step=work.step,
        epoch=training.plan.epoch_of(work.step),
        loss=loss_sum / work.tokens,
        tokens=work.tokens,
        learning_rate=rate,
        gradient_norm=update.gradient_norm,
        updated=update.updated,
        step_s=seconds,
        parts_s={**parts, "rest": max(0.0, seconds - sum(parts.values()))},
        traffic_bytes=training.traffic.of_step(),
        counts=counts_of(training, work.amounts),
        memory_peak_bytes=memory_peak_bytes(group.device),
    )
    return Taken(
        state=state,
        done=done,
        interrupted=wishes > 0,
        save_is_due=save_is_due > 0,
        save_can_begin=not saver_is_busy,
        parts_before=_parts_by_rank(before, parts_s) if before else [],
    )


def _own_parts(before: StepDone | None, group: Group) -> list[float]:
    """Returns this rank's parts at its place among those of all ranks, which are zeros."""
    size = len(RankParts._fields)
    places = [0.0] * (group.ranks * size)
    if before:
        own = RankParts.of(before.parts_s)
        places[group.rank * size : (group.rank + 1) * size] = [part or 0.0 for part in own]
    return places


def _parts_by_rank(before: StepDone, summed: Sequence[float]) -> list[RankParts]:
    size = len(RankParts._fields)
    parts = [RankParts(*summed[at : at + size]) for at in range(0, len(summed), size)]
    if "communication" in before.parts_s:  # on all ranks or on none
        return parts
    return [each._replace(communication_s=None) for each in parts]


def counts_of(training: Training, amounts: Amounts) -> dict[str, float]:
    model, vocabulary = training.config.model, training.tokenizer.size
    return {
        "source_tokens": amounts.source_tokens,
        "target_tokens": amounts.target_tokens,
        "positions": amounts.positions,
        "sequences": amounts.sequences,
        "flops": training_flops(model, vocabulary, amounts),
    }
