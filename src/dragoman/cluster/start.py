"""Starts the training of a run: it is checked, claimed and prepared here, and trained by workers.

Installs no signal handlers and prints nothing. Without torch.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from dragoman.batches.merges import check_merges
from dragoman.cluster.hosts import Cluster
from dragoman.cluster.launch import Orders, check_workers, launch_local, start_variables
from dragoman.cluster.outlook import Outlook
from dragoman.cluster.probe import cuda_devices
from dragoman.cluster.remote_run import train_on_hosts
from dragoman.cluster.worker_log import WorkerLog
from dragoman.config import Config
from dragoman.errors import RunError
from dragoman.model.memory import check_memory, no_room, room_on_cpu
from dragoman.model.size import size_of
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.telemetry.record.log_file import LAUNCHER, kept_log
from dragoman.telemetry.record.redaction import secret_values
from dragoman.telemetry.record.status import Status, mark_preparing, read_status
from dragoman.training.claim import as_found, claim_run, locked
from dragoman.training.manifest import recorded_command
from dragoman.training.mirror_claim import join_mirror


def claim_and_prepare(
    config: Config, run: RunDir, workers: int | None, cluster: Cluster | None, oversubscribe: bool
) -> bool:
    """Creates the run directory and the prepared data; refuses what could not be trained.

    Returns whether the run is new. Some refusals need the prepared data and come from the workers;
    a new run is then to be withdrawn (`withdraw_claim`).
    """
    is_new = not run.config.exists()
    if workers and not cluster and not oversubscribe:
        check_workers(workers, config.training.device)
    if not cluster:  # before anything is written; training checks again, with the true vocabulary
        vocabulary = 1 if config.tokenizer.model else config.tokenizer.vocabulary
        size = size_of(config.model, vocabulary, config.optimizer, config.sync)
        check_memory(config.model, vocabulary, (workers or 1) * size.weight_bytes)
        is_open = as_found(run, config).training.micro_batch_tokens == "auto"
        if is_open and (config.training.device == "cpu" or not cuda_devices()):
            room_bytes = room_on_cpu(size, workers or 1)
            if size.weight_bytes + size.gradient_bytes >= room_bytes:
                raise no_room(None, room_bytes, workers or 1)
    if config.training.subword_dropout and config.tokenizer.model:
        given = Path(config.tokenizer.model)
        if given.exists() or not cluster:  # hosts may have it where they prepare the data
            check_merges(given, config.training.subword_dropout)
    join_mirror(config, run)
    claim_run(run, config)
    with locked(run):  # of two concurrent starts, one continues; rank 0 locks it again
        mark_preparing(run)
        if not cluster and not config.data.prepared_from:  # workers fetch it
            prepare(config)
    return is_new


def train_in_workers(
    config: Config,
    run: RunDir,
    workers: int | None,
    cluster: Cluster | None,
    oversubscribe: bool,
    given: Orders,
    log: WorkerLog | None = None,
    outlook: Outlook | None = None,
    typed: Sequence[str] = (),
) -> int:
    """Trains a claimed run; returns the exit code of the first worker that failed, or 0.

    `outlook` looks ahead on other hosts. `typed` are the arguments that the user gave the command,
    if there was one.
    """
    command = recorded_command(typed, config) if typed else []
    hosts = cluster.given if cluster else ""
    variables = start_variables(hosts, workers, oversubscribe, command)
    secrets = secret_values(os.environ, [config.notify.webhook_variable])
    with kept_log(run, LAUNCHER, secrets, command):
        if cluster:
            return train_on_hosts(
                config, run, cluster, workers, oversubscribe, given, outlook, variables
            )
        arguments = ["train", str(run.config), "--run", str(run.root)]
        return launch_local(arguments, workers or 1, given, log, variables, run)


def ending_of(run: RunDir) -> Status:
    """Returns how a run has ended whose workers are gone."""
    status = read_status(run)
    # preparing: asked to stop before the first step, when there is no loss.
    if status.state in ("finished", "preempted", "preparing", "failed"):
        return status
    raise RunError(
        f"{run.root}: the workers have ended, and {run.status.name} still shows {status.state!r}: "
        "the last steps may not have been saved; the same command resumes from "
        "the newest checkpoint"
    )
