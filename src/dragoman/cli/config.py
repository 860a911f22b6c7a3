from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import Overrides

if TYPE_CHECKING:
    from dragoman.config import Config


def config(
    recipe: Annotated[Path | None, typer.Argument(metavar="RECIPE", help="A recipe.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of workers, for figures per worker.")
    ] = 1,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also show every setting, as a recipe of its own.")
    ] = False,
    timing: Annotated[
        bool,
        typer.Option(
            "--timing/--no-timing", help="Time a few steps on this machine, or guess its speed."
        ),
    ] = True,
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
    """Show what a recipe takes on this machine, and the figures that follow from it.

    Example: dragoman config recipes/multi30k.toml --workers 2
    """
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
    # As comments in front of all settings, so that the whole is a recipe.
    mark = "# " if show_all else ""
    for line in _summary(loaded, str(recipe), workers, timing):
        echo(f"{mark}{line}".rstrip())
    if show_all:
        echo()
        echo(dump_config(loaded).rstrip())
    else:
        echo("\nMore: --all shows every setting, dragoman config --keys what they mean.")


def _summary(config: "Config", recipe: str, workers: int, is_timed: bool) -> list[str]:
    from dragoman.cli.recipe_figures import Counted, figures
    from dragoman.cli.recipe_outlook import in_columns, outlook_rows, warnings_of
    from dragoman.console import StatusLine
    from dragoman.plan.here import outlook_of

    status = StatusLine(plain_every_s=0.0, to_stderr=True)
    try:
        found = outlook_of(config, workers, is_timed, status.show)
    finally:
        status.clear()
    counted = Counted(found.data.vocabulary, found.data.micro_batches, found.data.is_prepared)
    languages = f"{config.data.source_language} to {config.data.target_language}"
    return [
        f"{config.name}, {languages}, on this machine with {found.device}",
        *in_columns(outlook_rows(config, found, recipe)),
        *(f"  ! {warning}" for warning in warnings_of(config, found, workers, recipe)),
        "",
        "What follows from the recipe",
        *in_columns(figures(config, workers, counted)),
    ]
