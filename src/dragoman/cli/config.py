from inspect import cleandoc
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Overrides


def config(
    recipe: Annotated[Path | None, typer.Argument(metavar="RECIPE", help="A recipe.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="To show what each one does.")] = 1,
    keys: Annotated[bool, typer.Option("--keys", help="List every key with its meaning.")] = False,
    overrides: Overrides = None,
) -> None:
    """Show what a recipe would run, and the figures that follow from it.

    Example: dragoman config recipes/wmt16-en-de.toml --workers 4
    """
    from dragoman.cli.recipe_figures import figures
    from dragoman.config import config_keys, dump_config, load_config, source_keys
    from dragoman.console import say
    from dragoman.errors import UserError

    if keys:
        for key, default, meaning in config_keys():
            say(f"{key} = {default}" if default else key)
            say(f"    {meaning}")
        for kind, what, keys_of_kind in source_keys():
            say(f'\nIn [[data.train]], [[data.validation]] and [[data.test]]: kind = "{kind}"')
            say(f"    {cleandoc(what)}")
            for key, default, meaning in keys_of_kind:
                say(f"    {key} = {default}" if default else f"    {key}")
                say(f"        {meaning}")
        return
    if recipe is None:
        raise UserError(
            "name a recipe, as in: dragoman config recipes/demo.toml; or ask for --keys"
        )
    loaded = load_config(recipe, overrides or ())
    say(dump_config(loaded))
    say("# What follows from it")
    for name, value in figures(loaded, workers):
        say(f"# {name:<24} {value}")
