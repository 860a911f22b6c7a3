import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dragoman.cli.arguments import Overrides, Recipe
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.rundir import RunDir
    from dragoman.telemetry.events import AttemptEnded

PREEMPTED = 75  # EX_TEMPFAIL: try again later


def train(
    recipe: Recipe,
    run: Annotated[
        Path | None,
        typer.Option(help="The folder of the run; by default runs/<name of the recipe>."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes on this machine, or on each host.")
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="HOSTS",
            help="Hosts to train on: a host list, such as hosts.toml, or names: a,b,c.",
        ),
    ] = None,
    oversubscribe: Annotated[
        bool, typer.Option(help="Allow more workers than CUDA devices or processor cores.")
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Train a model; the same command resumes a run that stopped.

    Example: dragoman train recipes/demo.toml --run runs/first --workers 2

    On several machines: dragoman train recipes/demo.toml --hosts hosts.toml
    """
    from dragoman.config import load_config
    from dragoman.distributed.launchers import place
    from dragoman.training.claim import run_folder

    config = load_config(recipe, overrides or ())
    directory = run_folder(config, run)
    found = place()
    if found.started_by_launcher:
        ending = _train_here(config, directory)
        # An agent would take this code for a failure of the rank.
        _leave(PREEMPTED if ending.state == "preempted" and not found.has_agent else 0)
    elif code := _start(config, directory, workers, hosts, oversubscribe):
        sys.exit(code)


def _train_here(config: "Config", run: "RunDir") -> "AttemptEnded":
    """Trains in this process, as one rank or alone, until a signal or the end of the run."""
    from dragoman.diagnosis.watch import LiveFindings
    from dragoman.training.interruption import interruptions
    from dragoman.training.train import train as train_run

    with interruptions() as interruption:
        return train_run(config, run, LiveFindings, interruption)


def _leave(code: int) -> NoReturn:
    """Exits without the interpreter's shutdown, in which one of torch's threads that is inside the
    store could crash the process at the end of a successful run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _start(
    config: "Config", run: "RunDir", workers: int | None, hosts: str | None, oversubscribe: bool
) -> int:
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.launch import orders
    from dragoman.cluster.start import claim_and_prepare, ending_of, train_in_workers
    from dragoman.training.claim import withdraw_claim

    cluster = load_cluster(hosts) if hosts else None
    is_new = claim_and_prepare(config, run, workers, cluster, oversubscribe)
    if cluster or (workers or 1) > 1:
        with orders() as given:
            code = train_in_workers(config, run, workers, cluster, oversubscribe, given)
        if is_new and code == UserError.exit_code:
            withdraw_claim(run)
        # Workers that were asked to stop end without a code of their own; one that failed has
        # reported why.
        return code or {"finished": 0, "failed": 1}.get(ending_of(run).state, PREEMPTED)
    try:
        ending = _train_here(config, run)
    except UserError:
        if is_new:
            withdraw_claim(run)
        raise
    return PREEMPTED if ending.state == "preempted" else 0
