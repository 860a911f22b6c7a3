"""Sets up an attempt: `start` reads from top to bottom what is checked, made and restored."""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from dragoman.checkpoints.folders import make_room
from dragoman.checkpoints.places import remove_old_marks
from dragoman.config import Config
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.devices import agreed_precision, device_found
from dragoman.distributed.group import Group
from dragoman.errors import LostPeerError, UserError
from dragoman.model.loss import Objective
from dragoman.model.memory import check_memory
from dragoman.model.size import FP32_BYTES, size_of
from dragoman.rundir import RunDir
from dragoman.sync.step_traffic import StepTraffic
from dragoman.telemetry.events import (
    FORMAT,
    AttemptStarted,
    ForecastMade,
    Incident,
    ScheduleExtended,
    from_line,
)
from dragoman.telemetry.read.events import attempts_so_far, newest_format, refuse_newer_format
from dragoman.telemetry.record.log_file import kept_log, rank_writer
from dragoman.telemetry.record.redaction import secret_values
from dragoman.telemetry.record.writer import EventWriter
from dragoman.training.agreement import check_agreement, claim_on_every_host
from dragoman.training.batch_plan import subword_dropout_of
from dragoman.training.beside import Scorer, threads_for, why_not_beside
from dragoman.training.checkpointing import Checkpointer, forget_memory, owner_of, roots_of
from dragoman.training.claim import check_data, locked
from dragoman.training.data import TrainingData, open_prepared, open_training_data
from dragoman.training.ending import failed
from dragoman.training.evaluate import Evaluator, open_evaluator
from dragoman.training.interruption import Interruption
from dragoman.training.manifest import FORECAST, record_attempt, recorded_command
from dragoman.training.micro_batch import find_micro_batch
from dragoman.training.mirror_claim import join_mirror
from dragoman.training.mirrored import bring_checkpoint, open_mirror
from dragoman.training.observer import SafeObserver, Watch, watch_nothing
from dragoman.training.progress import ProgressLog
from dragoman.training.recorder import (
    Recorder,
    evaluations_so_far,
    open_events,
    record_clock_offset,
    sample_sensors,
)
from dragoman.training.resume import restore
from dragoman.training.schedule import learning_rate, tails_of
from dragoman.training.state import RunState
from dragoman.training.step import Stepper
from dragoman.training.updater import Updater, initial_model

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trainer:
    """The parts of an attempt, which the loop hands to the functions that need them."""

    config: Config
    group: Group
    hosts: list[str]
    """Of each rank."""
    data: TrainingData
    updater: Updater
    stepper: Stepper
    evaluator: Evaluator
    checkpointer: Checkpointer
    recorder: Recorder


@contextmanager
def start(
    config: Config,
    run: RunDir,
    group: Group,
    watch: Watch = watch_nothing,
    interruption: Interruption | None = None,
) -> Iterator[tuple[Trainer, RunState]]:
    """Opens a run for an attempt, with the state from which it goes on.

    Raises StoppedError where `interruption` asks to stop while data is fetched. Collective: every
    rank must call.
    """
    with ExitStack() as at_end:
        prepared, arrival = open_prepared(config, group, at_end, interruption or Interruption())
        check_agreement(group, config, prepared.passport)
        if config.training.subword_dropout:  # refused before anything is written
            all_or_none(group, lambda: subword_dropout_of(prepared.tokenizer(), config.training))
        group.on_rank_0(lambda: join_mirror(config, run))
        asked = config.training.precision
        config = config.with_training(precision=agreed_precision(asked, group))
        config = find_micro_batch(config, run, prepared, group)
        # A run that leaves the precision to the machines may go on where they have another one.
        run_id = claim_on_every_host(run, config.with_training(precision=asked), group)
        all_or_none(group, lambda: refuse_newer_format(run, newest_format(run)))
        group.on_rank_0(lambda: at_end.enter_context(locked(run)))
        roots = roots_of(run, config.checkpoints)
        all_or_none(group, lambda: remove_leftovers(run, roots, group))
        # What is fetched is verified then.
        is_to_verify = group.local_rank == 0 and not config.data.prepared_from
        all_or_none(group, lambda: prepared.verify() if is_to_verify else None)
        group.on_rank_0(lambda: check_data(run, prepared.passport))
        secrets = secret_values(os.environ, [config.notify.webhook_variable])
        command = recorded_command(sys.argv[1:], config)
        writer = rank_writer(group.host, group.rank)
        at_end.enter_context(kept_log(run, writer, secrets, command))
        data = open_training_data(prepared, config, group, arrival)
        hosts = group.gather(group.host)
        workers_here = hosts.count(group.host)
        all_or_none(
            group, lambda: check_memory_for(config, data.tokenizer.size, workers_here, group)
        )

        model = initial_model(config, data.tokenizer.size)
        sizes = [parameter.numel() for parameter in model.parameters()]
        objective = Objective(model, config.training.label_smoothing, config.training.r_drop)
        updater = Updater(objective, config, group, hosts)
        at_end.callback(updater.close)

        attempt = max(group.gather(attempts_so_far(run))) + 1  # hosts may know of different ones
        if attempt == 1 and group.local_rank == 0:
            forget_memory(roots)  # of a run that was here before and has been removed
        group.gather(None)
        owner = owner_of(run_id, config, prepared.passport)
        was_read = bring_checkpoint(config, run, roots, owner, group)
        state = restore(roots, owner, updater, group)

        # Before the events, so that it is closed after them, and their end is uploaded, too.
        mirror = open_mirror(config, run, run_id, group, was_read)
        if mirror:
            at_end.enter_context(mirror)
        events = at_end.enter_context(open_events(config, run, group, attempt))
        record_start(events, attempt, config, group, state)
        at_end.enter_context(sample_sensors(config, run, group, events))
        record_clock_offset(group, events)
        members = group.gather({"host": group.host, "device": str(group.device)})
        group.on_rank_0(lambda: record_attempt(run, config, prepared, attempt, members))

        progress = ProgressLog(data.last_step, config.telemetry.log_every_s, silent=not group.leads)
        at_end.callback(progress.end)
        earlier = evaluations_so_far(run, group, state.step)
        observer = SafeObserver(watch(config, hosts, FP32_BYTES * sum(sizes), earlier))
        recorder = Recorder(events, progress, observer, group.leads)
        if problem := why_not_beside(config, group):
            recorder.record_incident(Incident(state.step, "evaluation", problem, ranks=(0,)))
        scorer = Scorer(
            config.evaluation.beside and not problem,
            threads_for(config, workers_here, group.device),
            group.device,
        )
        at_end.callback(scorer.close)
        evaluator = open_evaluator(
            config, run, group, prepared, data.tokenizer, data.shards, scorer
        )
        checkpointer = at_end.enter_context(
            Checkpointer(config, run, group, data.tokenizer, owner, state, mirror)
        )
        stepper = Stepper(
            group=group,
            updater=updater,
            rate=learning_rate(config.schedule, config.model.width, config.training.steps),
            plan=data.plan,
            checkpointer=checkpointer,
            recorder=recorder,
            traffic=StepTraffic(
                updater.sync_settings, config.training.sharding, group, sizes, hosts
            ),
            last_step=data.last_step,
            model=config.model,
            passes=config.training.passes,
            vocabulary=data.tokenizer.size,
        )
        parts = (data, updater, stepper, evaluator, checkpointer, recorder)
        yield Trainer(config, group, hosts, *parts), state


def record_start(
    events: EventWriter, attempt: int, config: Config, group: Group, state: RunState
) -> None:
    """Emits the first events of an attempt; a rank that is lost later is recorded as well.

    Collective: every rank must call.
    """
    events.emit(
        AttemptStarted(
            attempt=attempt,
            rank=group.rank,
            ranks=group.ranks,
            host=group.host,
            device=str(group.device),
            first_step=state.step + 1,
            format=FORMAT,
        )
    )
    events.emit(device_found(config.training.precision, group))
    if group.leads and (forecast := given_forecast()):
        events.emit(forecast)
    for tail in tails_of(config.schedule, config.training.steps) if group.leads else ():
        if state.step <= tail.after_step:
            logger.info(
                f"after step {tail.after_step:,} the learning rate falls anew, from "
                f"{tail.rate:g} to {tail.final:g} at step {tail.last_step:,} (schedule.tails)"
            )
            events.emit(ScheduleExtended(tail.after_step, tail.last_step, tail.rate, tail.final))

    def record_loss(error: LostPeerError) -> None:
        events.emit(failed(group.pulse.steps_done, error))
        events.close()  # it is the last thing that this process writes

    group.pulse.on_loss = record_loss


def given_forecast() -> ForecastMade | None:
    """Returns what whoever started this attempt has forecast for it; None: nothing."""
    stamped = from_line(os.environ.get(FORECAST, ""))
    return stamped.event if stamped and isinstance(stamped.event, ForecastMade) else None


def check_memory_for(config: Config, vocabulary: int, workers_here: int, group: Group) -> None:
    """Refuses a model that is too large for this machine."""
    size = size_of(config.model, vocabulary, config.optimizer, config.sync)
    # Every worker makes the whole model in this machine's memory, wherever it goes from there.
    stays_here = group.device.type == "cpu" and config.training.sharding == "none"
    of_a_worker = size.state_bytes if stays_here else size.weight_bytes
    check_memory(config.model, vocabulary, workers_here * of_a_worker)


def remove_leftovers(run: RunDir, roots: Sequence[Path], group: Group) -> None:
    """Removes what killed attempts have left unfinished on this host; rank 0 has locked the run."""
    if group.local_rank != 0:
        return
    # Refused where the folder is rank 0's as well, which sees to it, or somebody still writes.
    with suppress(UserError, OSError), nullcontext() if group.leads else locked(run):
        remove_old_marks(run.root)
        for root in roots:
            make_room(root)
