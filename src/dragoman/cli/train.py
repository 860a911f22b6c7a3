import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Overrides, Recipe

PREEMPTED = 75  # EX_TEMPFAIL: try again later


def train(
    recipe: Recipe,
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/<name of the recipe> by default.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes on this machine.")] = 1,
    overrides: Overrides = None,
) -> None:
    """Train a model; the same command goes on where a run stopped.

    Example: dragoman train recipes/demo.toml --run runs/first --workers 2
    """
    from dragoman.cluster.launch import launch_local
    from dragoman.config import load_config
    from dragoman.distributed.launchers import place
    from dragoman.preparation import prepare
    from dragoman.rundir import read_json
    from dragoman.telemetry.status import mark_preparing
    from dragoman.training.claim import claim_run, run_folder

    config = load_config(recipe, overrides or ())
    directory = run_folder(config, run)
    is_rank = place().started_by_launcher
    if not is_rank:
        claim_run(directory, config)
        mark_preparing(directory)
        prepare(config)
    if is_rank or workers == 1:
        from dragoman.training.loop import train as train_run

        train_run(config, directory)
    else:
        arguments = ["train", str(directory.config), "--run", str(directory.root)]
        if code := launch_local(arguments, workers):
            sys.exit(code)
    # A rank leaves the verdict to whoever started all of them.
    if not is_rank and read_json(directory.status).get("state") == "preempted":
        sys.exit(PREEMPTED)
