import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dragoman.cli.arguments import Overrides, Recipe

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.rundir import RunDir
    from dragoman.telemetry.events import AttemptEnded

PREEMPTED = 75  # EX_TEMPFAIL: try again later


def train(
    recipe: Recipe,
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/<name of the recipe> by default.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes on this machine, or on each host.")
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="HOSTS", help="Train on these: a host list, as hosts.toml, or names: a,b,c."
        ),
    ] = None,
    oversubscribe: Annotated[
        bool, typer.Option(help="Allow more workers than processor cores or CUDA devices.")
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Train a model; the same command goes on where a run stopped.

    Example: dragoman train recipes/demo.toml --run runs/first --workers 2

    Or on several machines: dragoman train recipes/demo.toml --hosts hosts.toml
    """
    from dragoman.config import load_config
    from dragoman.distributed.launchers import place
    from dragoman.training.claim import run_folder

    config = load_config(recipe, overrides or ())
    directory = run_folder(config, run)
    found = place()
    if found.started_by_launcher:
        ending = _train_here(config, directory)
        # Where an agent watches, it would take this code for a failure of the rank.
        _leave(PREEMPTED if ending.state == "preempted" and not found.has_agent else 0)
    elif code := _start(config, directory, workers, hosts, oversubscribe):
        sys.exit(code)


def _train_here(config: "Config", run: "RunDir") -> "AttemptEnded":
    """Trains in this process, as one rank or alone, until a signal or the end of the run."""
    from dragoman.diagnosis.watch import watch
    from dragoman.training.interruption import interruptions
    from dragoman.training.train import train as train_run

    with interruptions() as interruption:
        return train_run(config, run, watch, interruption)


def _leave(code: int) -> NoReturn:
    """Not by the interpreter's own way: one of torch's threads that is inside the store just then
    would take the process down, at the end of a run that went well."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _start(
    config: "Config", run: "RunDir", workers: int | None, hosts: str | None, oversubscribe: bool
) -> int:
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.launch import check_workers, launch_local
    from dragoman.cluster.remote_run import train_on_hosts
    from dragoman.model.memory import check_memory
    from dragoman.model.size import size_of
    from dragoman.preparation import prepare
    from dragoman.telemetry.record.status import mark_preparing
    from dragoman.training.claim import claim_run, locked

    cluster = load_cluster(hosts) if hosts else None
    if workers and not cluster and not oversubscribe:
        check_workers(workers, config.training.device)
    if not cluster:  # before anything is written; training checks again, with the true vocabulary
        vocabulary = 1 if config.tokenizer.model else config.tokenizer.vocabulary
        weight_bytes = size_of(config.model, vocabulary).weight_bytes
        check_memory(config.model, vocabulary, (workers or 1) * weight_bytes)
    claim_run(run, config)
    with locked(run):  # of two who start it at once, one goes on; rank 0 locks it again
        mark_preparing(run)
        if not cluster:
            prepare(config)
    if cluster:
        code = train_on_hosts(config, run, cluster, workers, oversubscribe)
        return code or _code_of_ending(run)
    if (workers or 1) > 1:
        arguments = ["train", str(run.config), "--run", str(run.root)]
        return launch_local(arguments, workers or 1) or _code_of_ending(run)
    ending = _train_here(config, run)
    return PREEMPTED if ending.state == "preempted" else 0


def _code_of_ending(run: "RunDir") -> int:
    """Of workers that have ended without a code of their own, since they were asked to stop."""
    from dragoman.errors import RunError
    from dragoman.telemetry.record.status import read_status

    match read_status(run).state:
        case "finished":
            return 0
        case "preempted" | "preparing":  # asked to stop before the first step, there is no loss
            return PREEMPTED
        case "failed":
            return 1  # the worker that failed has reported why
        case state:
            raise RunError(
                f"{run.root}: the workers have ended, and {run.status.name} still says {state!r}: "
                "nobody knows whether the last steps were saved; the same command goes on from "
                "the newest checkpoint"
            )
