import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dragoman.cli.arguments import Overrides, Recipe

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.rundir import RunDir

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
        from dragoman.diagnosis.watching import watch
        from dragoman.training.loop import train as train_run

        ending = train_run(config, directory, watch)
        # Where an agent watches, it would take this code for a failure of the rank.
        _leave(PREEMPTED if ending.state == "preempted" and not found.has_agent else 0)
    elif code := _start(config, directory, workers, hosts):
        sys.exit(code)


def _leave(code: int) -> NoReturn:
    """Not by the interpreter's own way: one of torch's threads that is inside the store just then
    would take the process down, at the end of a run that went well."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _start(config: "Config", run: "RunDir", workers: int | None, hosts: str | None) -> int:
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.launch import launch_local
    from dragoman.cluster.remote_run import train_on_hosts
    from dragoman.model.memory import check_memory
    from dragoman.model.size import size_of
    from dragoman.preparation import prepare
    from dragoman.telemetry.status import mark_preparing, read_status
    from dragoman.training.claim import claim_run

    cluster = load_cluster(hosts) if hosts else None
    if not cluster:  # before anything is written; training looks again, with the true vocabulary
        vocabulary = 1 if config.tokenizer.model else config.tokenizer.vocabulary
        weight_bytes = size_of(config.model, vocabulary).weight_bytes
        check_memory(config.model, vocabulary, (workers or 1) * weight_bytes)
    claim_run(run, config)
    mark_preparing(run)
    code = 0
    if cluster:
        code = train_on_hosts(config, run, cluster, workers)
    else:
        prepare(config)
        if (workers or 1) > 1:
            arguments = ["train", str(run.config), "--run", str(run.root)]
            code = launch_local(arguments, workers or 1)
        else:
            from dragoman.diagnosis.watching import watch
            from dragoman.training.loop import train as train_run

            train_run(config, run, watch)
    # Whoever was asked to stop before the first step has left the run in preparation.
    is_finished = read_status(run).state == "finished"
    return code if code or is_finished else PREEMPTED
