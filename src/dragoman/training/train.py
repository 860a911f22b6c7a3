"""The training loop. It reads aloud: take a step, tell, look, save, and stop together."""

import dataclasses
from contextlib import nullcontext
from typing import Literal, NamedTuple

from dragoman.batches.loader import Loader
from dragoman.config import Config
from dragoman.console import duration, say
from dragoman.distributed.consensus import said_once
from dragoman.distributed.group import join, reason_of
from dragoman.distributed.preemption import notices
from dragoman.errors import RunError, SaidElsewhere
from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved, Incident, StepDone
from dragoman.training.divergence import judge
from dragoman.training.evaluate import evaluate
from dragoman.training.interruption import Interruption, common_reason, interruptions
from dragoman.training.observer import Watch, nobody
from dragoman.training.rollback import roll_back
from dragoman.training.setup import Training, start, tell_clocks
from dragoman.training.state import RunState
from dragoman.training.step import take_step
from dragoman.training.weight_check import compare

CLOCKS_EVERY_S = 300.0
"""Between two comparisons of the hosts' clocks; in between their drift is taken for steady."""


class Ending(NamedTuple):
    state: Literal["finished", "preempted"]
    reason: str
    step: int


def train(config: Config, run: RunDir, watch: Watch = nobody) -> Ending:
    """Train a run to its end, from wherever it is. Collective: every rank must call."""
    with (
        interruptions() as interruption,
        join(config.training.device) as group,
        start(config, run, group, watch) as training,
        notices(config.preemption, interruption.request)
        if group.local_rank == 0
        else nullcontext(),
    ):
        return run_steps(training, interruption)


def run_steps(training: Training, interruption: Interruption) -> Ending:
    state = training.state
    ending = planned_ending(training, state)
    if evaluation_is_due(training.config, state, ending):
        ending = None  # it was stopped in its last step, before it was looked at
    training.narrator.say(_first_words(training, ending))
    try:
        while ending is None:  # again after each rollback
            with Loader(
                training.train_shards,
                training.plan,
                training.tokenizer,
                training.group,
                state.step + 1,
            ) as loader:
                state, ending = run_on(training, state, loader, interruption)
    except BaseException as error:
        failure = reason_of(error, training.group.pulse)
        if not isinstance(failure, SaidElsewhere):  # the rank that says why records it too
            reason = f"{type(failure).__name__}: {failure}"
            training.events.emit(AttemptEnded(training.group.pulse.steps_done, "failed", reason))
        if failure is error:
            raise
        raise failure from error
    if ending.state == "finished":
        training.saving.forget_memory()
    training.events.emit(AttemptEnded(ending.step, ending.state, ending.reason))
    training.narrator.say(f"{ending.state} at step {ending.step:,}: {ending.reason}")
    return ending


def run_on(
    training: Training, state: RunState, loader: Loader, interruption: Interruption
) -> tuple[RunState, Ending | None]:
    """Steps until the run ends, or until it has gone back to an earlier one: then there is no end.

    Collective: every rank must call.
    """
    config, group, saving = training.config, training.group, training.saving
    ending = planned_ending(training, state)
    clocks_compared_s = state.elapsed_s
    equal_at = compare(training, state.step, None)
    if evaluation_is_due(config, state, ending):
        state = evaluate(training, state)
        ending = ending or planned_ending(training, state)
        save(training, state, must=True, must_succeed=ending is not None)
    before: StepDone | None = None
    while ending is None:
        step = take_step(training, state, loader, interruption, before)
        state, done, interrupted = step.state, step.done, step.interrupted
        training.events.emit(done)
        training.narrator.step(done)
        if group.leads and before:
            training.tell(training.observer.after_step(before, step.parts_before))
        before = done
        tell_of_saves(training, done.step_s)
        numbers, verdict = judge(state.numbers, done.step, done.loss, done.updated, config.training)
        state = dataclasses.replace(state, numbers=numbers)
        if verdict.action == "skip":
            training.report_incident(Incident(state.step, "update-skipped", verdict.what))
        elif verdict.action == "stop":
            raise said_once(group, RunError(f"step {state.step:,}: {verdict.what}"))
        elif verdict.action == "roll back" and not interrupted:
            state = roll_back(training, state, verdict)
            save(training, state, must=True)  # so that it is known after a crash, too
            return state, None
        if state.elapsed_s - clocks_compared_s >= CLOCKS_EVERY_S:  # of rank 0, on all ranks alike
            tell_clocks(group, training.events)
            clocks_compared_s = state.elapsed_s
        if comparison_is_due(config, state):
            equal_at = compare(training, state.step, equal_at)

        if interrupted:
            told = group.gather([group.host, interruption.reason])
            ending = Ending("preempted", common_reason(told), state.step)
        else:
            ending = planned_ending(training, state)
        looked = not interrupted and evaluation_is_due(config, state, ending)
        if looked:
            state = evaluate(training, state)
            ending = ending or planned_ending(training, state)
        if looked or ending or (step.save_is_due and step.save_can_begin):
            save(training, state, must=looked, must_succeed=ending is not None)
        elif not step.save_is_due and saving.in_memory_is_due(
            state
        ):  # or the disk might never be free
            saving.begin_in_memory(state, training.updater, training.model)
    return state, ending


def evaluation_is_due(config: Config, state: RunState, ending: Ending | None) -> bool:
    is_time = ending is not None or state.step % config.evaluation.every_steps == 0
    return is_time and state.evaluated_step < state.step


def comparison_is_due(config: Config, state: RunState) -> bool:
    every_steps = config.training.compare_every_steps
    return every_steps > 0 and state.step % every_steps == 0


def planned_ending(training: Training, state: RunState) -> Ending | None:
    """Whether a stop rule holds; a function of the state, which all ranks share."""
    settings = training.config.training
    reason = None
    if settings.steps is not None and state.step >= settings.steps:
        reason = f"training.steps = {settings.steps:,} are done"
    elif training.last_step is not None and state.step >= training.last_step:
        reason = f"training.epochs = {settings.epochs} are done"
    elif settings.hours is not None and state.elapsed_s >= 3600 * settings.hours:
        reason = f"training.hours = {settings.hours:g} have passed"
    elif settings.patience is not None and state.evaluations_since_best >= settings.patience:
        reason = (
            f"no better {training.config.evaluation.best_by} in {settings.patience} evaluations"
        )
    return Ending("finished", reason, state.step) if reason else None


def save(training: Training, state: RunState, must: bool, must_succeed: bool = False) -> None:
    """Begin to save, and at the end of a run wait for it. A failing disk stops nothing before that.

    Collective: every rank must call.
    """
    training.group.pulse.enter("checkpoint")
    training.saving.begin(state, training.updater, training.model, must or must_succeed)
    if must_succeed:
        training.saving.finish()
        check_saved(training, state.step, tell_of_saves(training, 0.0, needed_step=state.step))


def check_saved(training: Training, step: int, failure: Exception | None) -> None:
    """Fail where rank 0's last save has failed, and say what that has cost.

    Collective: every rank must call.
    """
    group = training.group
    what = group.broadcast(str(failure) if failure else "")
    if what:
        newest = max(group.gather(training.saving.newest_step() if group.local_rank == 0 else 0))
        raise said_once(group, RunError(f"{what}; {loss_of_steps(step, newest)}"))


def loss_of_steps(step: int, newest: int) -> str:
    """In words: what is lost when step `newest` is the last that was saved, and `step` done."""
    if newest >= step:
        return f"no step is lost, since a whole checkpoint of step {step:,} was found"
    kept = f"the newest step that is saved is {newest:,}" if newest else "no step has been saved"
    return f"{kept}, so {step - newest:,} step(s) are lost"


def tell_of_saves(
    training: Training, step_s: float, needed_step: int | None = None
) -> Exception | None:
    """What has been saved beside the last steps; trouble is told once.

    On rank 0, why the checkpoint of `needed_step` could not be saved.
    """
    failure = None
    for saved in training.saving.results(step_s):
        if saved.error is None and saved.folder:
            training.events.emit(
                CheckpointSaved(saved.step, saved.folder.name, saved.bytes, saved.write_s)
            )
        elif saved.error and saved.step == needed_step and training.group.leads:
            failure = saved.error
        elif saved.error and saved.is_news:
            training.events.emit(Incident(saved.step, "checkpoint", str(saved.error)))
            say(f"warning: {saved.error}; training goes on and tries again later")
    return failure


def _first_words(training: Training, ending: Ending | None) -> str:
    plan, state = training.plan, training.state
    if ending:
        return f"{training.run.root} is complete: {ending.reason}"
    begin = f"going on after step {state.step:,} ({duration(state.elapsed_s)} so far)"
    return (
        f"{training.run.root}: {begin if state.step else 'starting'}; "
        f"{training.group.ranks} worker(s) on {training.group.device.type}, "
        f"{len(training.train_shards):,} pairs, {plan.steps_per_epoch:,} steps an epoch, "
        f"{plan.micro_batches_per_step} micro-batches a step"
    )
