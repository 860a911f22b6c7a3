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
    from dragoman.training.claim import claim_run, run_folder

    config = load_config(recipe, overrides or ())
    directory = run_folder(config, run)
    if place().started_by_launcher or workers == 1:
        if not place().started_by_launcher:
            claim_run(directory, config)
            prepare(config)
        from dragoman.training.loop import train as train_run

        ending = train_run(config, directory)
        if ending.state == "preempted" and not place().started_by_launcher:
            sys.exit(PREEMPTED)
        return

    claim_run(directory, config)
    prepare(config)
    arguments = ["train", str(directory.config), "--run", str(directory.root)]
    if code := launch_local(arguments, workers):
        sys.exit(code)
    if read_json(directory.status).get("state") == "preempted":
        sys.exit(PREEMPTED)
