import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Overrides, Recipe

UNEQUAL = 3  # done, but unhealthy


def verify_resume(
    recipe: Recipe,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes on this machine.")] = 1,
    steps: Annotated[
        int, typer.Option(min=5, help="Number of updates of each of the two runs.")
    ] = 24,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed for the step at which the run is killed; random by default."),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Show that a run killed with SIGKILL resumes as if nothing had happened.

    Trains a few steps uninterrupted and again killed and resumed, both in a temporary folder.

    Losses and final weights are compared bit for bit. The exit code is 3 if they differ.

    Example: dragoman verify-resume recipes/demo.toml --workers 2
    """
    from dragoman.cluster import verification
    from dragoman.config import load_config
    from dragoman.console import echo
    from dragoman.errors import RunError

    config = load_config(recipe, overrides or ())
    folder = Path(tempfile.mkdtemp(prefix="dragoman-verify-"))
    if seed is None:
        seed = random.randrange(1_000_000)
    try:
        found = verification.verify_resume(config, workers, steps, seed, folder)
    except RunError:
        raise  # its message names a file in the folder, which therefore stays
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    echo(found.sentence)
    if not found.is_equal:
        echo(f"both runs are kept in {folder}")
        sys.exit(UNEQUAL)
    shutil.rmtree(folder, ignore_errors=True)
