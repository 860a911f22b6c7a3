"""The training loop. It reads aloud: take a step, tell, look, save, and stop together."""

import dataclasses
import time
from typing import Literal, NamedTuple

from dragoman.batches.loader import Loader
from dragoman.checkpoints.storage import (
    Tensors,
    all_checkpoints,
    point_to,
    prune,
    save_checkpoint,
)
from dragoman.config import Config
from dragoman.console import duration
from dragoman.decoding.translator import translate
from dragoman.distributed.group import join, reason_of
from dragoman.errors import SaidElsewhere, StorageError
from dragoman.evaluation.metrics import score
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    Evaluated,
    StepDone,
    Trouble,
)
from dragoman.training.comparison import compare
from dragoman.training.interruption import Interruption, interruptions
from dragoman.training.shortage import smaller_pieces
from dragoman.training.start import Training, start
from dragoman.training.state import RunState
from dragoman.training.tensors import optimizer_tensors, whole_objective, whole_tensors


class Ending(NamedTuple):
    state: Literal["finished", "preempted"]
    reason: str
    step: int


def train(config: Config, run: RunDir) -> Ending:
    """Train a run to its end, from wherever it is. Collective: every rank must call."""
    with (
        interruptions() as interruption,
        join(config.training.device) as group,
        start(config, run, group) as training,
    ):
        return run_steps(training, interruption)


def run_steps(training: Training, interruption: Interruption) -> Ending:
    config, narrator = training.config, training.narrator
    state = training.state
    ending = planned_ending(training, state)
    narrator.say(_first_words(training, ending))
    try:
        with Loader(
            training.train_shards,
            training.plan,
            training.tokenizer,
            training.group,
            state.step + 1,
        ) as loader:
            equal_at = compare(training, state.step, None)
            if ending is None and evaluation_is_due(config, state):
                state = evaluate(training, state)
                ending = planned_ending(training, state)
            while ending is None:
                state, done, interrupted = take_step(training, state, loader, interruption)
                training.events.emit(done)
                narrator.step(done)
                if comparison_is_due(config, state):
                    equal_at = compare(training, state.step, equal_at)

                if interrupted:
                    ending = Ending("preempted", "asked to stop by a signal", state.step)
                else:
                    ending = planned_ending(training, state)
                looked = not interrupted and (ending or evaluation_is_due(config, state))
                if looked:
                    state = evaluate(training, state)
                    ending = ending or planned_ending(training, state)
                if looked or ending or state.step % config.checkpoints.every_steps == 0:
                    save(training, state, must_succeed=ending is not None)
    except BaseException as error:
        failure = reason_of(error, training.group.pulse)
        if not isinstance(failure, SaidElsewhere):  # the rank that says why records it too
            reason = f"{type(failure).__name__}: {failure}"
            training.events.emit(AttemptEnded(state.step, "failed", reason))
        raise failure from error
    training.events.emit(AttemptEnded(ending.step, ending.state, ending.reason))
    narrator.say(f"{ending.state} at step {ending.step:,}: {ending.reason}")
    return ending


def evaluation_is_due(config: Config, state: RunState) -> bool:
    is_time = state.step > 0 and state.step % config.evaluation.every_steps == 0
    return is_time and state.evaluated_step < state.step


def comparison_is_due(config: Config, state: RunState) -> bool:
    every_steps = config.training.compare_every_steps
    return every_steps > 0 and state.step % every_steps == 0


def take_step(
    training: Training, state: RunState, loader: Loader, interruption: Interruption
) -> tuple[RunState, StepDone, bool]:
    """One update, what to record of it, and whether any rank was asked to stop.

    Collective: every rank must call.
    """
    group, updater = training.group, training.updater
    group.pulse.enter("data", state.step + 1)
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
        # clock, whether anyone wants to stop, and whether anyone has run out of memory.
        loss_sum, step_s, wishes, short = group.sums(
            [
                gradients.loss_sum,
                seconds if group.leads else 0.0,
                float(interruption.asked),
                float(gradients.ran_out),
            ]
        )
        if not short:
            break
        pieces = smaller_pieces(training, work, pieces, gradients.ran_out)
    rate = training.rate(work.step)
    update = updater.update(rate)
    state = state.after_step(work.tokens, step_s)
    if scaling := updater.scaler.state_dict():
        state = dataclasses.replace(state, loss_scaling=scaling)
    seconds = time.perf_counter() - begun
    parts = {"data": waited_s, **gradients.parts_s, "optimizer": updater.update_s}
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
    )
    if not update.updated:
        what = "gradients were not finite; the update was skipped"
        training.events.emit(Trouble(work.step, what))
        training.narrator.say(f"step {work.step:,}: {what}")
    return state, done, wishes > 0


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


def evaluate(training: Training, state: RunState) -> RunState:
    """Losses and scores, shared out over the ranks. Collective: every rank must call."""
    config, group = training.config, training.group
    group.pulse.enter("evaluation")
    begun = time.perf_counter()
    wanted = config.evaluation.translate_sentences or None
    sources, references = (side[:wanted] for side in training.validation_text)
    with whole_objective(
        training.objective, config.model, training.tokenizer.size, group.device
    ) as objective:
        validation_loss = training.validation.loss(objective, group)
        sample_loss = None
        if training.train_sample:
            sample_loss = training.train_sample.loss(objective, group)
        shares = group.gather(
            translate(
                objective.model,
                training.tokenizer,
                sources[group.rank :: group.ranks],
                config.decoding.model_copy(update={"beam": config.evaluation.beam}),
                group.device,
            )
        )
    translations = [shares[n % group.ranks][n // group.ranks] for n in range(len(sources))]
    # Rank 0 scores and keeps the time; all act on what it says.
    bleu, chrf, bleu_signature, chrf_signature = group.led(
        lambda: score(translations, references, config.data.target_language)
    )
    seconds = group.led(lambda: time.perf_counter() - begun)
    value = bleu if config.evaluation.best_by == "bleu" else -validation_loss
    state = state.after_evaluation(value, seconds, config.checkpoints.keep_best)
    evaluated = Evaluated(
        step=state.step,
        validation_loss=validation_loss,
        train_sample_loss=sample_loss,
        bleu=bleu,
        chrf=chrf,
        bleu_signature=bleu_signature,
        chrf_signature=chrf_signature,
        is_best=state.best_step == state.step,
        seconds=seconds,
        samples=[
            {"source": source, "translation": translation, "reference": reference}
            for source, translation, reference in zip(
                sources, translations, references, strict=True
            )
        ][: config.evaluation.samples],
    )
    if group.leads:
        training.events.emit(evaluated)
        training.narrator.evaluation(evaluated)
    return state


def save(training: Training, state: RunState, must_succeed: bool) -> None:
    """Save, link and prune on rank 0. A disk that fails stops nothing but the end of a run.

    Collective: every rank must call; the others wait.
    """
    group, model = training.group, training.model
    group.pulse.enter("checkpoint")
    weights = whole_tensors(model.state_dict(), kept=group.leads)
    adam = whole_tensors(optimizer_tensors(training.updater.optimizer, model), kept=group.leads)
    group.led(lambda: _save(training, state, weights, adam, must_succeed))


def _save(
    training: Training, state: RunState, weights: Tensors, adam: Tensors, must_succeed: bool
) -> None:
    config, root = training.config, training.run.checkpoints
    begun = time.perf_counter()
    try:
        checkpoint = save_checkpoint(
            root,
            state.step,
            model=weights,
            optimizer=adam,
            state={
                "run": state.to_json(),
                "model": config.model.model_dump(mode="json"),
                "vocabulary": training.tokenizer.size,
                "source_language": config.data.source_language,
                "target_language": config.data.target_language,
            },
            tokenizer_model=training.tokenizer.model,
        )
        point_to(root, "latest", checkpoint)
        if state.best_step == state.step:
            point_to(root, "best", checkpoint)
    except StorageError as error:
        if must_succeed:
            raise
        training.events.emit(Trouble(state.step, str(error)))
        training.narrator.say(f"warning: {error}; training goes on and tries again later")
        return
    newest = [c.step for c in all_checkpoints(root)][-config.checkpoints.keep_last :]
    best = [int(step) for step in state.scores] if config.checkpoints.keep_best else []
    prune(root, keep={*newest, *best})
    seconds = time.perf_counter() - begun
    size = sum(checkpoint.sizes().values())
    training.events.emit(CheckpointSaved(state.step, checkpoint.folder.name, size, seconds))


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
