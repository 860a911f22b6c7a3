"""The training loop: take a step, record it, evaluate, save, and stop with all ranks at once."""

import dataclasses
import logging
from contextlib import nullcontext

from dragoman.batches.loader import Loader
from dragoman.config import Config, SyncSettings
from dragoman.console import duration
from dragoman.distributed.allocator import keep_freed_memory
from dragoman.distributed.consensus import all_or_none, raise_on_all_ranks
from dragoman.distributed.group import Group, join, reason_of
from dragoman.distributed.preemption import notices
from dragoman.errors import DivergedError, FailedElsewhereError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptEnded, Incident
from dragoman.training.auto_sync import Choice, NetworkWatch, look, rehearse, worth_a_change
from dragoman.training.divergence import judge
from dragoman.training.ending import failed, planned_ending, preempted
from dragoman.training.interruption import (
    Interruption,
    StoppedError,
    StopRequest,
    common_stop,
)
from dragoman.training.observer import Watch, watch_nothing
from dragoman.training.recorder import record_clock_offset
from dragoman.training.rollback import roll_back
from dragoman.training.setup import Trainer, start
from dragoman.training.state import RunState
from dragoman.training.step import StepResult
from dragoman.training.weight_check import WeightCheck

logger = logging.getLogger(__name__)

CLOCKS_EVERY_S = 300.0
"""Between two comparisons of the hosts' clocks; in between their drift is taken for steady."""


def train(
    config: Config,
    run: RunDir,
    watch: Watch = watch_nothing,
    interruption: Interruption | None = None,
) -> AttemptEnded:
    """Trains a run to its end, from wherever it is, in this process as one rank or alone.

    `interruption` may ask it to stop; signal handlers are the caller's business. Returns the
    event that ends the attempt. Collective: every rank must call.
    """
    interruption = interruption or Interruption()
    keep_freed_memory()
    with join(config.training.device) as group:
        try:
            return _attempt(config, run, group, watch, interruption)
        except StoppedError:
            ending = stopped(group, 0, interruption)
            if group.leads:
                logger.info(f"{run.root}: stopped before the first step: {ending.reason}")
            return ending


def _attempt(
    config: Config, run: RunDir, group: Group, watch: Watch, interruption: Interruption
) -> AttemptEnded:
    """Sets up, takes steps and ends, or raises StoppedError. Collective: every rank must call."""
    with (
        start(config, run, group, watch, interruption) as (trainer, state),
        notices(config.preemption, interruption.notice) if group.local_rank == 0 else nullcontext(),
    ):
        trainer.recorder.progress.log(f"{run.root}{_first_words(trainer, state)}")
        trainer.checkpointer.end_waiting_with(lambda: interruption.signals)
        if trainer.data.arrival:  # while there is data left, to stop in order
            trainer.data.arrival.on_failure = interruption.stop
        try:
            ending = fit(trainer, state, interruption)
        except BaseException as error:
            failure = reason_of(error, group.pulse)
            if not isinstance(failure, FailedElsewhereError):  # which another rank records
                trainer.recorder.events.emit(failed(group.pulse.steps_done, failure))
            if failure is error:
                raise
            raise failure from error
        if ending.state == "finished":
            trainer.checkpointer.forget_memory()
        trainer.recorder.record_end(ending)
        return ending


def fit(trainer: Trainer, state: RunState, interruption: Interruption) -> AttemptEnded:
    """Takes steps until the attempt ends, after each rollback from an earlier one again.

    Collective: every rank must call.
    """
    ending = planned_ending(trainer.config, trainer.data.last_step, state)
    if ending and not evaluation_is_due(trainer.config, state, ending):
        return ending
    state = first_choice(trainer, state, interruption)
    has_stepped = False
    while True:
        summed_ranks = trainer.updater.islands.members
        trainer.stepper.traffic.follow(trainer.updater.sync_settings)
        with trainer.data.loader(trainer.group, state.step + 1, summed_ranks) as loader:
            state, ending = run_steps(trainer, state, loader, interruption, has_stepped)
        if ending:
            return ending
        has_stepped = True


def run_steps(
    trainer: Trainer, state: RunState, loader: Loader, interruption: Interruption, has_stepped: bool
) -> tuple[RunState, AttemptEnded | None]:
    """Takes steps until the attempt ends, or until it goes back or changes how it synchronizes:
    then there is no ending. `has_stepped`: the attempt has taken steps before. Collective: every
    rank must call.
    """
    config, group, updater = trainer.config, trainer.group, trainer.updater
    checkpointer, recorder = trainer.checkpointer, trainer.recorder
    last_step = trainer.data.last_step
    clocks_compared_s = state.elapsed_s
    weights = WeightCheck(
        updater.compared,
        group,
        config.training,
        recorder.events,
    )
    weights.check(state.step)
    trainer.evaluator.follow(state)
    ending = planned_ending(config, last_step, state)
    if evaluation_is_due(config, state, ending):  # the attempt before was stopped when it was due
        synchronize_last(trainer, state, ending)
        state, ending = evaluate(trainer, state, interruption)
        save(trainer, state, ending, must=True)

    before: StepResult | None = None
    watch = NetworkWatch(updater.sync_settings, state.elapsed_s)
    while ending is None:
        looks = config.sync.mode == "auto" and group.leads and watch.looks_again(state.elapsed_s)
        step = trainer.stepper.take(state, loader, interruption, before, looks)
        if not step:
            has_stepped = has_stepped or before is not None
            return state, stopped_without_data(trainer, state, interruption, has_stepped)
        state, done, message = step.state, step.done, step.message
        watch.after_step(done, step.micro_batches)
        recorder.record_step(done)
        if before:
            recorder.observe_step(before.done, message.parts_before)
        before = step
        checkpointer.record_saves(recorder, done.step_s)
        trainer.evaluator.poll(state, recorder, checkpointer)

        divergence, verdict = judge(
            state.divergence, done.step, done.loss, done.updated, config.training
        )
        state = dataclasses.replace(state, divergence=divergence)
        if verdict.action == "skip":
            recorder.record_incident(Incident(state.step, "update-skipped", verdict.what))
        elif verdict.action == "stop":
            raise_on_all_ranks(group, DivergedError(f"step {state.step:,}: {verdict.what}"))
        elif verdict.action == "roll back" and not message.stop_is_requested:
            state = roll_back(group, updater, checkpointer, recorder, state, verdict)
            checkpointer.save(state, updater, must=True)  # so that it is known after a crash, too
            return state, None

        if state.elapsed_s - clocks_compared_s >= CLOCKS_EVERY_S:  # of rank 0, on all ranks alike
            record_clock_offset(group, recorder.events)
            clocks_compared_s = state.elapsed_s
        if weights.is_due(state.step):
            weights.check(state.step)

        if message.stop_is_requested:
            ending = stopped(group, state.step, interruption)
        else:
            ending = planned_ending(config, last_step, state)
            synchronize_last(trainer, state, ending)
        evaluates = not message.stop_is_requested and evaluation_is_due(config, state, ending)
        if evaluates:
            state, ending = evaluate(trainer, state, interruption)
        if evaluates or ending or (message.save_is_due and message.save_can_begin):
            save(trainer, state, ending, must=evaluates)
        elif not message.save_is_due and checkpointer.in_memory_is_due(state):
            # Not where a save to disk waits for its turn: the disk might never be free.
            checkpointer.save_in_memory(state, updater)
            trainer.stepper.traffic.leave_out()
        if message.looks_again and not ending:
            choice = look(config, updater, watch.computing(), trainer.hosts, group)
            if worth_a_change(choice, updater.sync_settings):
                state = adopt(trainer, state, choice)
                save(trainer, state, None, must=True)
                return state, None  # islands may share out pairs in another way
            fruitless, waits = watch.fruitless_looks + 1, watch.waits()
            watch = NetworkWatch(updater.sync_settings, state.elapsed_s, fruitless, waits)
            trainer.stepper.traffic.leave_out()
    return state, ending


def first_choice(trainer: Trainer, state: RunState, interruption: Interruption) -> RunState:
    """Chooses how to synchronize, where `sync.mode` is auto and nothing has been chosen yet.

    A worker alone has nobody to synchronize with, and chooses nothing for those that join it later.
    Collective: every rank must call.
    """
    group, updater = trainer.group, trainer.updater
    alone = SyncSettings().model_dump(mode="json")
    is_chosen = state.sync not in ({}, alone)  # what is measured has a size of buckets
    if trainer.config.sync.mode != "auto" or (is_chosen and group.ranks > 1):
        return state
    if group.ranks == 1:
        updater.adopt(SyncSettings(), state.step)
        return dataclasses.replace(state, sync=alone)
    summed_ranks = updater.islands.members
    with trainer.data.loader(group, state.step + 1, summed_ranks) as loader:
        work = loader.next(lambda: interruption.is_requested)
        if not work:
            return state  # and the first step finds the same
        computing = rehearse(updater, work, group, trainer.recorder)
    return adopt(trainer, state, look(trainer.config, updater, computing, trainer.hosts, group))


def adopt(trainer: Trainer, state: RunState, choice: Choice) -> RunState:
    """Goes on with what was chosen, and records it. Collective: every rank must call."""
    settings = choice.chosen.settings
    trainer.checkpointer.wait_until_copied()  # weights and moments may become common
    trainer.updater.adopt(settings, state.step)
    trainer.recorder.record_sync(choice.event(state.step), choice.lines())
    return dataclasses.replace(state, sync=settings.model_dump(mode="json"))


def synchronize_last(trainer: Trainer, state: RunState, ending: AttemptEnded | None) -> None:
    """Makes weights common where the run ends with a step that did not know that it was the last:
    by training.hours, or by fewer training.steps than it was stopped with. Collective: every rank
    must call."""
    outer = trainer.updater.outer
    if ending and outer and not all(trainer.group.gather(outer.is_common())):
        trainer.checkpointer.wait_until_copied()
        trainer.updater.synchronize(state.step, is_last=True)


def evaluation_is_due(config: Config, state: RunState, ending: AttemptEnded | None) -> bool:
    is_time = ending is not None or state.step % config.evaluation.every_steps == 0
    # No run ends without the scores that are still computed beside it.
    is_pending = ending is not None and state.pending is not None
    return is_pending or (is_time and state.evaluated_step < state.step)


def evaluate(
    trainer: Trainer, state: RunState, interruption: Interruption
) -> tuple[RunState, AttemptEnded | None]:
    """Evaluates this step, after the scores of the evaluation before, if they were pending, have
    taken effect: here and nowhere else, however early they were known.

    Returns also the ending that follows. An attempt that is asked to stop while it waits for scores
    leaves both to the next one. Collective: every rank must call.
    """

    def ends(state: RunState) -> bool:
        return planned_ending(trainer.config, trainer.data.last_step, state) is not None

    settled = trainer.evaluator.settle(
        state, trainer.recorder, trainer.checkpointer, lambda: interruption.request is not None
    )
    if settled is None:
        return state, stopped(trainer.group, state.step, interruption)
    if settled.evaluated_step < settled.step:
        settled = trainer.evaluator.evaluate(trainer.updater, settled, trainer.recorder, ends)
    return settled, planned_ending(trainer.config, trainer.data.last_step, settled)


def save(trainer: Trainer, state: RunState, ending: AttemptEnded | None, must: bool) -> None:
    """Saves a checkpoint; the last one of an attempt must succeed, the others may fail.

    Collective: every rank must call.
    """
    if ending:
        trainer.checkpointer.save_last(state, trainer.updater, trainer.recorder)
    else:
        trainer.checkpointer.save(state, trainer.updater, must)
    trainer.stepper.traffic.leave_out()


def stopped_without_data(
    trainer: Trainer, state: RunState, interruption: Interruption, has_stepped: bool
) -> AttemptEnded:
    """Saves what was done before the data of a step was there, and returns the ending.

    Where nothing was done and data will not come, that is raised: a run that was started again and
    again would never get further. Collective: every rank must call.
    """
    arrival = trainer.data.arrival
    if has_stepped:
        # Not of the next step, whose data was waited for: it would count as done.
        trainer.group.pulse.enter("checkpoint", state.step)
        ending = stopped(trainer.group, state.step, interruption)
        save(trainer, state, ending, must=True)
        return ending
    all_or_none(trainer.group, lambda: arrival.raise_failure() if arrival else None)
    return stopped(trainer.group, state.step, interruption)


def stopped(group: Group, step: int, interruption: Interruption) -> AttemptEnded:
    """Returns the ending that some rank has been asked for. Collective: every rank must call."""
    requests = [
        StopRequest(*request) if request else None for request in group.gather(interruption.request)
    ]
    return preempted(step, common_stop(group.gather(group.host), requests), group.ranks)


def _first_words(trainer: Trainer, state: RunState) -> str:
    """Returns what the attempt will do, to follow the folder of the run."""
    config, data = trainer.config, trainer.data
    ending = planned_ending(config, data.last_step, state)
    if ending and not evaluation_is_due(config, state, ending):
        return f" is complete: {ending.reason}"
    many = data.plan.micro_batches_per_step
    begin = f"going on after step {state.step:,} ({duration(state.elapsed_s)} so far)"
    return (
        f": {begin if state.step else 'starting'}; "
        f"{trainer.group.ranks} worker(s) on {trainer.group.device.type}, "
        f"{len(data.shards):,} pairs, {data.plan.steps_per_epoch:,} steps an epoch, "
        f"{many} micro-batch{'' if many == 1 else 'es'} a step"
    )
