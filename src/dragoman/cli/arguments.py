"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

MOST_BEAM = 100  # as in a recipe

Recipe = Annotated[
    Path, typer.Argument(help="A recipe, as in the folder recipes.", metavar="RECIPE")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SECTION.KEY=VALUE", help="Change a key of the recipe; can be repeated."
    ),
]
Run = Annotated[Path, typer.Argument(help="The folder of a run, as runs/demo.", metavar="RUN")]
CheckpointName = Annotated[
    str, typer.Option("--checkpoint", help="best, latest, or the number of a step.")
]
Average = Annotated[
    int,
    typer.Option(
        "--average", min=1, metavar="K", help="Use the mean of the newest K checkpoints instead."
    ),
]
Beam = Annotated[
    int | None,
    typer.Option("--beam", min=1, max=MOST_BEAM, help="1: greedy; otherwise as in the recipe."),
]
Hosts = Annotated[
    str,
    typer.Option("--hosts", metavar="HOSTS", help="A host list, as hosts.toml, or names: a,b,c."),
]
