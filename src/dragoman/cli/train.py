import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dragoman.cli.arguments import Overrides, Recipe, local_folder
from dragoman.errors import NotStartedError, UserError

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.plan.outlook import RunOutlook
    from dragoman.rundir import RunDir
    from dragoman.telemetry.events import AttemptEnded

PREEMPTED = 75  # EX_TEMPFAIL: try again later


def train(
    recipe: Recipe,
    run: Annotated[
        Path | None,
        typer.Option(
            parser=local_folder, help="The folder of the run; by default runs/<name of the recipe>."
        ),
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
    skip_check: Annotated[
        bool,
        typer.Option(
            "--skip-check", help="With --hosts: neither measure nor forecast before the start."
        ),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="With --hosts: start without asking, even if the run would wait for the network "
            "longer than it computes, or cost more than cost.budget.",
        ),
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
    from dragoman.watch.notifier import notifications

    config = load_config(recipe, overrides or ())
    directory = run_folder(config, run)
    found = place()
    if found.started_by_launcher:
        ending = _train_here(config, directory)
        # An agent would take this code for a failure of the rank.
        _leave(PREEMPTED if ending.state == "preempted" and not found.has_agent else 0)
    # Here, where the run is started, and not in its workers, which come by the way above.
    with notifications(config.notify, directory) as ended:
        code = _start(config, directory, workers, hosts, oversubscribe, skip_check, yes)
        ended(code)
    if code:
        sys.exit(code)


def _outlook(config: "Config", run: "RunDir", workers: int | None, yes: bool) -> "RunOutlook":
    from dragoman.plan.outlook import RunOutlook

    def confirm(concern: str, is_stopping: Callable[[], bool]) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise NotStartedError(
                f"{concern}; add --yes to start all the same, or look for a better way with: "
                "dragoman plan"
            )
        return _answered(f"{concern[0].upper()}{concern[1:]}. Start all the same?", is_stopping)

    return RunOutlook(config, run, workers, confirm)


def _answered(question: str, is_stopping: Callable[[], bool]) -> bool:
    """Returns whether a person answers yes; asking ends with Ctrl-C, which is an order here."""
    from dragoman.console import echo

    echo(f"{question} [y/N]")
    while not is_stopping():
        if select.select([sys.stdin], [], [], 0.2)[0]:
            return sys.stdin.readline().strip().lower() in ("y", "yes")
    raise NotStartedError("stopped before anything was started")


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
    config: "Config",
    run: "RunDir",
    workers: int | None,
    hosts: str | None,
    oversubscribe: bool,
    skip_check: bool,
    yes: bool,
) -> int:
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.launch import orders
    from dragoman.cluster.start import claim_and_prepare, ending_of, train_in_workers
    from dragoman.console import waiting
    from dragoman.training.claim import withdraw_claim

    cluster = load_cluster(hosts) if hosts else None
    is_new = claim_and_prepare(config, run, workers, cluster, oversubscribe)
    if cluster or (workers or 1) > 1:
        outlook = None
        if cluster and not skip_check:
            outlook = _outlook(config, run, workers, yes)
        try:
            with orders() as given:
                code = train_in_workers(
                    *(config, run, workers, cluster, oversubscribe, given),
                    outlook=outlook,
                    typed=sys.argv[1:],
                )
        except (UserError, NotStartedError):
            if is_new:
                withdraw_claim(run)
            raise
        if is_new and code == UserError.exit_code:
            withdraw_claim(run)
        # Workers that were asked to stop end without a code of their own; one that failed has
        # reported why.
        return code or {"finished": 0, "failed": 1}.get(ending_of(run).state, PREEMPTED)
    with waiting("loading torch", on_terminal_only=True):
        import dragoman.training.train  # noqa: F401
    try:
        ending = _train_here(config, run)
    except UserError:
        if is_new:
            withdraw_claim(run)
        raise
    return PREEMPTED if ending.state == "preempted" else 0
