from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Hosts, Overrides


def setup(
    hosts: Hosts,
    recipe: Annotated[
        Path | None,
        typer.Argument(
            help="Also install what this recipe asks for, such as MLflow.", metavar="[RECIPE]"
        ),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Install this version of Dragoman on every host, in parallel.

    Example: dragoman setup recipes/demo.toml --hosts hosts.toml
    """
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.package import USUAL_EXTRAS, extras_for, extras_here
    from dragoman.cluster.setup import set_up
    from dragoman.config import load_config
    from dragoman.errors import UserError

    if overrides and not recipe:
        raise UserError("--set changes a recipe; name one, such as recipes/demo.toml")
    extras = extras_for(load_config(recipe, overrides or ())) if recipe else USUAL_EXTRAS
    set_up(load_cluster(hosts), [*extras, *extras_here()])
