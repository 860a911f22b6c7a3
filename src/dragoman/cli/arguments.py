"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

MOST_BEAM = 100  # as in a recipe

Recipe = Annotated[
    Path,
    typer.Argument(
        help="A recipe file, or the name of a shipped recipe, such as demo.", metavar="RECIPE"
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SECTION.KEY=VALUE", help="Override a key of the recipe; repeatable."
    ),
]


def local_folder(folder: str) -> Path:
    """Returns the path of a folder on this machine; refuses the address of a mirror."""
    # Without this, a path of it would name a folder called s3: here.
    if "://" in str(folder):
        from dragoman.errors import UserError
        from dragoman.storage.address import is_address

        if is_address(folder):
            raise UserError(
                f"{folder}: is an address, and only `dragoman report` reads a run from its mirror; "
                "name a folder here, to which `dragoman train RECIPE` with that mirror in "
                "checkpoints.mirror fetches the run"
            )
    return Path(folder)


RunOrCheckpoint = Annotated[
    Path,
    typer.Argument(
        parser=local_folder,
        help="The folder of a run, or of a checkpoint, such as runs/demo/checkpoints/best.",
        metavar="RUN",
    ),
]
CheckpointName = Annotated[
    str, typer.Option("--checkpoint", help="best, latest, or a step number.")
]
Average = Annotated[
    int,
    typer.Option("--average", min=1, metavar="K", help="Average the newest K checkpoints instead."),
]
Beam = Annotated[
    int | None,
    typer.Option(
        "--beam",
        min=1,
        max=MOST_BEAM,
        help="Beam size, 1 for greedy search; by default that of the recipe.",
    ),
]
Engine = Annotated[
    Literal["auto", "torch", "ctranslate2"],
    typer.Option("--engine", help="What computes; auto: CTranslate2 on a CPU, torch on a GPU."),
]
Precision = Annotated[
    Literal["float32", "int16", "int8"],
    typer.Option("--precision", help="What to compute with; integers only with CTranslate2."),
]
Hosts = Annotated[
    str,
    typer.Option(
        "--hosts", metavar="HOSTS", help="A host list, such as hosts.toml, or names: a,b,c."
    ),
]
