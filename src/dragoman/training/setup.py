"""Everything a loop needs, made or restored: `start` reads from top to bottom what that is."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman import __version__
from dragoman.batches.plan import BatchPlan
from dragoman.checkpoints.checkpoint import Owner
from dragoman.checkpoints.folders import make_room
from dragoman.checkpoints.places import remove_old_marks
from dragoman.checkpoints.run_id import known_id
from dragoman.config import Config
from dragoman.distributed.consensus import together
from dragoman.distributed.devices import device_found
from dragoman.distributed.group import Group
from dragoman.errors import UserError
from dragoman.evaluation.heldout import HeldOut, fixed_sample
from dragoman.evaluation.translations import Translations
from dragoman.model.loss import Objective
from dragoman.model.memory import check_memory
from dragoman.model.size import FP32_BYTES, size_of
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir, read_json, write_json
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
from dragoman.sync import synchronized
from dragoman.sync.step_traffic import StepTraffic
from dragoman.telemetry.clocks import compare_clocks
from dragoman.telemetry.events import FORMAT, AttemptEnded, AttemptStarted, Evaluated, Incident
from dragoman.telemetry.export.exporters import open_exporters
from dragoman.telemetry.read.events import attempts_so_far, read_events
from dragoman.telemetry.record.sampler import sampling, sensors_of_host
from dragoman.telemetry.record.status import StatusFile
from dragoman.telemetry.record.writer import EventWriter, Exporter
from dragoman.tokenizer import Tokenizer
from dragoman.training.agreement import check_agreement
from dragoman.training.checkpointing import Saving, forget_memory, owner_of, roots_of
from dragoman.training.claim import check_data, claim_run, locked
from dragoman.training.observer import Careful, Observer, Watch, nobody
from dragoman.training.progress import Narrator
from dragoman.training.resume import newest_checkpoint
from dragoman.training.schedule import Rate, learning_rate
from dragoman.training.state import RunState
from dragoman.training.tensors import load_optimizer_tensors, load_weights
from dragoman.training.updater import Updater, check_precision
from dragoman.version import code_hash


@dataclass(frozen=True)
class Training:
    config: Config
    run: RunDir
    group: Group
    prepared: PreparedData
    tokenizer: Tokenizer
    train_shards: Shards
    plan: BatchPlan
    model: Transformer
    objective: Objective
    updater: Updater
    rate: Rate
    validation: HeldOut
    train_sample: HeldOut | None
    validation_text: tuple[list[str], list[str]]
    events: EventWriter
    narrator: Narrator
    traffic: StepTraffic
    saving: Saving
    translations: Translations
    observer: Observer
    last_step: int | None
    state: RunState

    def tell(self, line: str | None) -> None:
        if line:
            self.narrator.say(line)

    def report_incident(self, incident: Incident) -> None:
        """Logs it for the person and records it for the diagnosis."""
        self.events.emit(incident)
        self.narrator.say(f"step {incident.step:,}: {incident.message}")


@contextmanager
def start(config: Config, run: RunDir, group: Group, watch: Watch = nobody) -> Iterator[Training]:
    """Collective: every rank must call."""
    with ExitStack() as at_end:
        prepared = together(group, lambda: PreparedData.open(config.prepared_folder))
        check_agreement(group, config, prepared.passport)
        run_id = claim_on_every_host(run, config, group)
        group.led(lambda: at_end.enter_context(locked(run)))
        roots = roots_of(run, config.checkpoints)
        together(group, lambda: remove_leftovers(run, roots, group))
        together(group, lambda: prepared.verify() if group.local_rank == 0 else None)
        group.led(lambda: check_data(run, prepared.passport))
        tokenizer = together(group, prepared.tokenizer)
        train_shards = together(group, lambda: prepared.shards("train"))
        plan = together(group, lambda: plan_batches(train_shards, config, group.ranks))
        together(group, lambda: check_precision(config.training.precision, group.device))

        workers_here = group.gather(group.host).count(group.host)
        together(group, lambda: check_memory_for(config, tokenizer.size, workers_here, group))

        torch.manual_seed(config.training.seed)
        model = Transformer(config.model, tokenizer.size)
        objective = Objective(model, config.training.label_smoothing)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        sync = synchronized(objective, group, config.training.sharding)
        updater = Updater(sync, objective, config, group)
        owner = owner_of(run_id, config, prepared.passport)
        attempt = max(group.gather(attempts_so_far(run))) + 1  # hosts may know of different ones
        if attempt == 1 and group.local_rank == 0:
            forget_memory(roots)  # of a run that was here before and has been removed
        group.gather(None)
        state = restore(roots, owner, model, updater, group)

        events = at_end.enter_context(open_events(config, run, group, attempt))
        events.emit(
            AttemptStarted(
                attempt,
                group.rank,
                group.ranks,
                group.host,
                str(group.device),
                state.step + 1,
                FORMAT,
            )
        )
        events.emit(device_found(config.training.precision, group))
        group.pulse.on_loss = lambda what: _record_loss(events, group.pulse.steps_done, what)
        at_end.enter_context(sampled(config, run, group, events))
        tell_clocks(group, events)
        members = group.gather({"host": group.host, "device": str(group.device)})
        hosts = [member["host"] for member in members]
        group.led(lambda: record_attempt(run, prepared, attempt, members))
        last_step = last_planned_step(config, plan)
        narrator = Narrator(last_step, config.telemetry.log_every_s, silent=not group.leads)
        at_end.callback(narrator.end)
        yield Training(
            config=config,
            run=run,
            group=group,
            prepared=prepared,
            tokenizer=tokenizer,
            train_shards=train_shards,
            plan=plan,
            model=model,
            objective=objective,
            updater=updater,
            rate=learning_rate(config.schedule, config.model.width, config.training.steps),
            validation=held_out(prepared, "validation", config, tokenizer),
            train_sample=train_sample(train_shards, config, tokenizer),
            validation_text=prepared.text("validation"),
            events=events,
            narrator=narrator,
            saving=at_end.enter_context(Saving(config, run, group, tokenizer, owner, state)),
            translations=Translations(run, config.data.target_language),
            traffic=StepTraffic(config, group, parameters, hosts),
            observer=Careful(
                watch(
                    config,
                    hosts,
                    FP32_BYTES * parameters,
                    evaluations_so_far(run, group, state),
                )
            ),
            last_step=last_step,
            state=state,
        )


def check_memory_for(config: Config, vocabulary: int, workers_here: int, group: Group) -> None:
    size = size_of(config.model, vocabulary)
    # Every worker makes the whole model in this machine's memory, wherever it goes from there.
    stays_here = group.device.type == "cpu" and config.training.sharding == "none"
    of_a_worker = size.state_bytes if stays_here else size.weight_bytes
    check_memory(config.model, vocabulary, workers_here * of_a_worker)


def claim_on_every_host(run: RunDir, config: Config, group: Group) -> str:
    """The run's id, the same on every host. Collective: every rank must call."""
    # A host that is new may lead others that have the run already.
    known = group.gather(together(group, lambda: known_id(run)))
    found = next(filter(None, known), "")
    # Rank 0 first: where hosts share the folder, two at once would be in each other's way.
    run_id: str = group.led(lambda: claim_run(run, config, found))
    is_first_of_another_host = group.local_rank == 0 and not group.leads
    together(group, lambda: claim_run(run, config, run_id) if is_first_of_another_host else None)
    return run_id


def remove_leftovers(run: RunDir, roots: Sequence[Path], group: Group) -> None:
    """Remove what killed attempts have left unfinished on this host; rank 0 has locked the run."""
    if group.local_rank != 0:
        return
    # Refused where the folder is rank 0's as well, which sees to it, or somebody still writes.
    with suppress(UserError, OSError), nullcontext() if group.leads else locked(run):
        remove_old_marks(run.root)
        for root in roots:
            make_room(root)


def restore(
    roots: Sequence[Path], owner: Owner, model: Transformer, updater: Updater, group: Group
) -> RunState:
    """Go on where the run is. Collective: every rank must call."""
    checkpoint = newest_checkpoint(roots, owner, model, group)
    if checkpoint is None:
        return RunState()
    load_weights(model, checkpoint.model)
    load_optimizer_tensors(updater.optimizer, model, checkpoint.optimizer)
    state = RunState.from_json(checkpoint.state["run"])
    if state.loss_scaling:
        updater.scaler.load_state_dict(state.loss_scaling)
    return state


def _record_loss(events: EventWriter, step: int, what: str) -> None:
    """The last thing that this process writes."""
    events.emit(AttemptEnded(step, "failed", what, "lost-rank"))
    events.close()


@contextmanager
def open_events(config: Config, run: RunDir, group: Group, attempt: int) -> Iterator[EventWriter]:
    """This rank's events; one rank of each host also serves other people's tools."""
    with ExitStack() as at_end:
        exporters: list[Exporter] = [StatusFile(run)] if group.leads else []
        if group.local_rank == 0:
            exporters += at_end.enter_context(open_exporters(config, run, group.host, group.leads))
        events = EventWriter(run.events_of(attempt, group.rank), exporters)
        at_end.callback(events.close)
        yield events


def evaluations_so_far(run: RunDir, group: Group, state: RunState) -> list[Evaluated]:
    """Of earlier attempts, as far as they count, for the one who watches."""
    if not group.leads:
        return []
    recorded = read_events(run, rank=0, kinds={Evaluated})
    events = (stamped.event for _, _, stamped in recorded)
    by_step = {event.step: event for event in events if isinstance(event, Evaluated)}
    return [by_step[step] for step in sorted(by_step) if step <= state.step]


def tell_clocks(group: Group, events: EventWriter) -> None:
    """How this host's clocks stand to rank 0's. Collective: every rank must call."""
    if group.ranks > 1:
        events.emit(compare_clocks(lambda: group.sums([0.0]), group.gather, group.rank, group.host))


def sampled(
    config: Config, run: RunDir, group: Group, events: EventWriter
) -> AbstractContextManager[None]:
    """The sensors of this host, by its first rank. Collective: every rank must call."""
    told = group.gather([group.host, os.getpid()])
    here = {rank: pid for rank, (host, pid) in enumerate(told) if host == group.host}
    every_s = config.telemetry.sensors_every_s if group.local_rank == 0 else 0.0
    return sampling(events.emit, sensors_of_host(run.root, here), group.host, every_s)


def plan_batches(shards: Shards, config: Config, ranks: int) -> BatchPlan:
    settings = config.training
    plan = BatchPlan(
        shards.lengths(), settings.tokens_per_update, settings.micro_batch_tokens, settings.seed
    )
    if ranks > plan.micro_batches_per_step:
        raise UserError(
            f"{ranks} workers, but a step has only {plan.micro_batches_per_step} micro-batches to "
            "share out; start fewer workers, or lower training.micro_batch_tokens "
            f"(now {settings.micro_batch_tokens}) in a new run"
        )
    return plan


def last_planned_step(config: Config, plan: BatchPlan) -> int | None:
    """The step at which the run ends at the latest, where steps or epochs say so."""
    limits = []
    if config.training.steps is not None:
        limits.append(config.training.steps)
    if config.training.epochs is not None:
        limits.append(config.training.epochs * plan.steps_per_epoch)
    return min(limits, default=None)


def held_out(prepared: PreparedData, split: str, config: Config, tokenizer: Tokenizer) -> HeldOut:
    shards = prepared.shards(split)
    return HeldOut(shards, range(len(shards)), config.training.micro_batch_tokens, tokenizer)


def train_sample(shards: Shards, config: Config, tokenizer: Tokenizer) -> HeldOut | None:
    if not config.evaluation.train_sample_pairs:
        return None
    pairs = fixed_sample(len(shards), config.evaluation.train_sample_pairs, config.training.seed)
    return HeldOut(shards, pairs, config.training.micro_batch_tokens, tokenizer)


def record_attempt(
    run: RunDir, prepared: PreparedData, attempt: int, members: list[dict[str, str]]
) -> None:
    """manifest.json: what the run is made of, and who took part in each attempt."""
    manifest: dict[str, Any] = read_json(run.manifest) if run.manifest.exists() else {}
    manifest.setdefault("data_sha256", prepared.passport.content_hash)
    manifest.setdefault("tokenizer_sha256", prepared.passport.tokenizer_sha256)
    manifest.setdefault("data", prepared.passport.model_dump(mode="json"))
    manifest.setdefault("attempts", []).append(
        {
            "attempt": attempt,
            "command": sys.argv,
            "members": members,
            "versions": {
                "dragoman": __version__,
                "code": code_hash(),
                "commit": _commit(),
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
            },
        }
    )
    write_json(run.manifest, manifest)


def _commit() -> str:
    """The commit of a checkout; empty for an installed package."""
    try:
        shown = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return shown.stdout.strip()
