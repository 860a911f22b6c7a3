from inspect import cleandoc
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Overrides


def config(
    recipe: Annotated[Path | None, typer.Argument(metavar="RECIPE", help="A recipe.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of workers, for figures per worker.")
    ] = 1,
    keys: Annotated[
        bool, typer.Option("--keys", help="List all keys with default and meaning.")
    ] = False,
    test_notify: Annotated[
        bool,
        typer.Option(
            "--test-notify", help="Send one message as [notify] says, and say whether it arrived."
        ),
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Show the resolved recipe and the figures that follow from it.

    Example: dragoman config recipes/wmt16-en-de.toml --workers 4
    """
    from dragoman.cli.recipe_figures import figures
    from dragoman.config import config_keys, dump_config, load_config, source_keys
    from dragoman.console import echo
    from dragoman.errors import UserError

    if keys:
        for key, default, meaning in config_keys():
            echo(f"{key} = {default}" if default else key)
            echo(f"    {meaning}")
        for kind, what, keys_of_kind in source_keys():
            echo(f'\nIn [[data.train]], [[data.validation]] and [[data.test]]: kind = "{kind}"')
            echo(f"    {cleandoc(what)}")
            for key, default, meaning in keys_of_kind:
                echo(f"    {key} = {default}" if default else f"    {key}")
                echo(f"        {meaning}")
        return
    if recipe is None:
        raise UserError(
            "name a recipe, as in: dragoman config recipes/demo.toml; or list all keys with --keys"
        )
    loaded = load_config(recipe, overrides or ())
    if test_notify:
        from dragoman.watch.notifying import send_trial

        send_trial(loaded.notify, loaded.name)
        echo("the test message was taken")
        return
    echo(dump_config(loaded))
    echo("# What follows from it")
    for name, value in figures(loaded, workers):
        echo(f"# {name:<24} {value}")
