"""One step: gradients of all ranks, one small message in which they agree, and the update."""

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.batches.amounts import Amounts
from dragoman.batches.loader import Loader
from dragoman.batches.plan import BatchPlan
from dragoman.config import ModelSettings
from dragoman.distributed.devices import memory_peak_bytes
from dragoman.distributed.group import Group
from dragoman.model.size import training_flops
from dragoman.sync.step_traffic import StepTraffic
from dragoman.telemetry.events import StepDone
from dragoman.training.checkpointing import Checkpointer
from dragoman.training.interruption import Interruption
from dragoman.training.observer import RankParts
from dragoman.training.out_of_memory import smaller_pieces
from dragoman.training.recorder import Recorder
from dragoman.training.schedule import Rate
from dragoman.training.state import RunState
from dragoman.training.updater import Gradients, Updater


class StepResult(NamedTuple):
    state: RunState
    done: StepDone
    message: "StepMessage"
    left_at: float
    """When ranks last parted, on this rank's monotonic clock: after the message, or after a
    synchronization."""
    synchronized_s: float
    """What a synchronization at its end has taken."""
    micro_batches: int
    """Of this rank."""


class StepMessage(NamedTuple):
    """What all ranks know of a step after its one message, before the weights are touched."""

    loss_sum: float
    step_s: float
    """On rank 0's clock, so far."""
    stop_is_requested: bool
    """On any rank."""
    ran_out_of_memory: bool
    """Any rank."""
    is_finite: bool
    """The gradients of all ranks are; otherwise none changes its weights."""
    save_is_due: bool
    save_can_begin: bool
    """None is in flight on rank 0."""
    looks_again: bool
    """Whether all ranks measure the network after this step, where `sync.mode` is auto."""
    received_at: float
    """On this rank's monotonic clock; ranks receive it together, since it waits for the last."""
    parts_before: list[RankParts]
    """On rank 0, where the time of the step before went, by rank; empty where there was none."""


@dataclass(frozen=True)
class Stepper:
    """The parts of a run that take part in every step."""

    group: Group
    updater: Updater
    rate: Rate
    plan: BatchPlan
    checkpointer: Checkpointer
    recorder: Recorder
    traffic: StepTraffic
    last_step: int | None
    """Of the run, if it is known before."""
    model: ModelSettings
    passes: int
    """Of each pair in a step."""
    vocabulary: int

    def take(
        self,
        state: RunState,
        loader: Loader,
        interruption: Interruption,
        before: StepResult | None,
        looks_again: bool = False,
    ) -> StepResult | None:
        """Takes one step; `before` is the last one of this attempt, if there was one.

        None: nothing was done, since a rank was asked to stop while one waited for its data.
        `looks_again`: rank 0's wish that all measure the network after it.

        Collective: every rank must call.
        """
        group, updater = self.group, self.updater
        group.pulse.enter("data", state.step + 1)
        self.traffic.begin_step()
        begun = time.perf_counter()
        left_at = before.left_at if before else begun
        work = loader.next(lambda: interruption.is_requested)
        if not work:
            return None
        waited_s = time.perf_counter() - begun
        for_others_s = loader.waited_for_others_s  # which is no lateness of this rank
        left_at += for_others_s
        pieces = 1
        while True:
            gradients = updater.gradients(work, pieces)
            group.pulse.enter("agreement")
            has_gradients_at = time.perf_counter()
            # The update of the step before came after its message, as did a synchronization.
            so_far_s = has_gradients_at - begun + updater.update_s
            so_far_s += before.synchronized_s if before else 0.0
            last = before.done if before else None
            message = self._exchange(gradients, state, so_far_s, interruption, last, looks_again)
            if not message.ran_out_of_memory:
                break
            left_at = message.received_at
            pieces = smaller_pieces(group, self.recorder, work, pieces, gradients.ran_out)
            updater.sync.renew()
        stalled_s = self.checkpointer.wait_until_copied()  # the update changes what is being copied
        rate = self.rate(work.step) * state.divergence.rate_factor
        updater.update(gradients, rate, message.is_finite)
        is_last = work.step == self.last_step
        synchronized_s = updater.synchronize(work.step, is_last)
        parted_at = time.perf_counter() if synchronized_s else message.received_at
        state = state.after_step(work.tokens, message.step_s)
        if scaling := updater.scaler.state_dict():
            state = dataclasses.replace(state, loss_scaling=scaling)
        if counts := updater.optimizer.counts:
            state = dataclasses.replace(state, optimizer=counts)
        step_s = time.perf_counter() - begun
        parts_s = {
            "data": waited_s - for_others_s,
            **gradients.parts_s,
            "agreement": message.received_at - has_gradients_at + for_others_s,
            "checkpoint": stalled_s,
            "optimizer": updater.update_s,
        }
        if "communication" in parts_s:
            parts_s["communication"] += synchronized_s
        done = StepDone(
            step=work.step,
            epoch=self.plan.epoch_of(work.step),
            loss=message.loss_sum / work.tokens,
            tokens=work.tokens,
            learning_rate=rate,
            gradient_norm=gradients.norm,
            updated=message.is_finite,
            step_s=step_s,
            parts_s={**parts_s, "rest": max(0.0, step_s - sum(parts_s.values()))},
            traffic_bytes=self.traffic.of_step(work.step, is_last),
            counts=self._counts(work.amounts),
            memory_peak_bytes=memory_peak_bytes(group.device),
            # Whatever happened until then, timed or not, made the others wait.
            ready_s=has_gradients_at - left_at - gradients.parts_s.get("communication", 0.0),
        )
        return StepResult(state, done, message, parted_at, synchronized_s, len(work.batches))

    def _exchange(
        self,
        gradients: Gradients,
        state: RunState,
        so_far_s: float,
        interruption: Interruption,
        before: StepDone | None,
        looks_again: bool,
    ) -> StepMessage:
        """Exchanges the message in one sum over the ranks: of 64 bytes, and 72 more a rank."""
        leads = self.group.leads
        (
            loss_sum,
            step_s,
            requests,
            short,
            not_finite,
            save_is_due,
            saver_is_busy,
            asks_to_look,
            *parts_s,
        ) = self.group.sums(
            [
                gradients.loss_sum,
                so_far_s if leads else 0.0,
                float(interruption.is_requested),
                float(gradients.ran_out),
                float(not math.isfinite(gradients.norm)),
                float(leads and self.checkpointer.is_due(state, so_far_s)),
                float(leads and self.checkpointer.is_busy),
                float(leads and looks_again),
                *own_parts(before, self.group),
            ]
        )
        return StepMessage(
            loss_sum=loss_sum,
            step_s=step_s,
            stop_is_requested=requests > 0,
            ran_out_of_memory=short > 0,
            is_finite=not not_finite,
            save_is_due=save_is_due > 0,
            save_can_begin=not saver_is_busy,
            looks_again=asks_to_look > 0,
            received_at=time.perf_counter(),
            parts_before=parts_by_rank(before, parts_s) if before and leads else [],
        )

    def _counts(self, amounts: Amounts) -> dict[str, float]:
        return {
            "source_tokens": amounts.source_tokens,
            "target_tokens": amounts.target_tokens,
            "positions": amounts.positions,
            "sequences": amounts.sequences,
            "flops": self.passes * training_flops(self.model, self.vocabulary, amounts),
        }


def own_parts(before: StepDone | None, group: Group) -> list[float]:
    """Returns this rank's parts of a step at its place among those of all ranks, which are 0."""
    size = len(RankParts._fields)
    places = [0.0] * (group.ranks * size)
    if before:
        own = RankParts.of(before)
        places[group.rank * size : (group.rank + 1) * size] = [part or 0.0 for part in own]
    return places


def parts_by_rank(before: StepDone, summed: Sequence[float]) -> list[RankParts]:
    """Returns the parts of each rank from the sum over ranks of `own_parts`."""
    size = len(RankParts._fields)
    parts = [RankParts(*summed[at : at + size]) for at in range(0, len(summed), size)]
    if "communication" in before.parts_s:  # on all ranks or on none
        return parts
    return [each._replace(communication_s=None) for each in parts]
