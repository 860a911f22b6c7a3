import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Overrides, local_folder


def demo(
    run: Annotated[
        Path,
        typer.Option(parser=local_folder, help="The folder of the run."),
    ] = Path("runs/demo"),
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    overrides: Overrides = None,
) -> None:
    """Train, evaluate and translate on this machine in minutes, offline.

    A small Transformer learns from a built-in corpus, and translates what it has never seen.

    Example: dragoman demo
    """
    from dragoman.cli.evaluate import evaluate
    from dragoman.cli.report import report
    from dragoman.cli.train import train
    from dragoman.config import load_config
    from dragoman.console import echo
    from dragoman.evaluation.scores import read_scores
    from dragoman.recipes import shipped_recipe
    from dragoman.rundir import RunDir, read_json
    from dragoman.training.claim import move_away_if_other

    recipe = shipped_recipe("demo")
    directory = RunDir(run)
    if aside := move_away_if_other(directory, load_config(recipe, overrides or ())):
        echo(f"{run} belongs to another recipe and was moved to {aside}")
    echo(f"Training an English-German translator from {recipe} with {workers} workers.\n")
    # Two workers show more than one, also where they have to take turns on one core.
    train(recipe, run=run, workers=workers, oversubscribe=workers <= 2, overrides=overrides)
    if read_json(directory.status).get("state") != "finished":
        sys.exit(1)
    echo("\nOn sentences whose combinations of words were not in the training data:")
    evaluate(run, worst=0)
    for sample in read_scores(directory, "test").samples[:6]:
        mark = (
            ""
            if sample["translation"] == sample["reference"]
            else f"   (expected: {sample['reference']})"
        )
        echo(f"    {sample['source']}\n      -> {sample['translation']}{mark}")
    echo("\nThe report:")
    report(str(run))
    echo(f'\nNow try: {_program()} translate {run} "The old baker is sleeping."')


def _program() -> str:
    """Returns how to call this program, which may be in an environment that is not active."""
    installed = Path(sys.executable).with_name("dragoman")
    found = shutil.which("dragoman")
    if not installed.exists() or (found and Path(found).samefile(installed)):
        return "dragoman"
    here = Path.cwd()
    return str(installed.relative_to(here) if installed.is_relative_to(here) else installed)
