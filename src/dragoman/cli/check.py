import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Overrides
from dragoman.errors import UserError

UNFIT = 3


def check(
    recipe: Annotated[
        Path | None,
        typer.Argument(
            help="A recipe, to judge the hosts by what it needs; a file or a shipped name.",
            metavar="[RECIPE]",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="HOSTS",
            help="Hosts to check: a host list, such as hosts.toml, or names: a,b,c. "
            "By default this machine.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the result as a web page.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write it as JSON, for dragoman plan --check."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes on this machine, or on each host.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Measure hosts and the network between them, before a run pays for what is wrong with them.

    Example: dragoman check recipes/multi30k.toml --hosts hosts.toml --html check.html

    The exit code is 3 if something is unfit.
    """
    import shutil

    from dragoman.check.check import check_cluster
    from dragoman.check.rehearsal import rehearse_on
    from dragoman.check.result import write_check
    from dragoman.check.terminal import lines_of
    from dragoman.check.webpage import to_html
    from dragoman.cluster.hosts import load_cluster
    from dragoman.config import load_config
    from dragoman.console import StatusLine, echo
    from dragoman.rundir import ensure_writable, write_whole

    for path in filter(None, (html, output)):
        if path.is_dir():
            raise UserError(f"{path}: is a folder; name a file")
        ensure_writable(path)
    config = load_config(recipe, overrides or ()) if recipe else None
    if overrides and not recipe:
        raise UserError("--set changes a key of a recipe; name one")
    cluster = load_cluster(hosts) if hosts else None
    status = StatusLine(plain_every_s=0.0, to_stderr=True)
    try:
        result = check_cluster(cluster, config, rehearse_on, workers=workers, tell=status.show)
    finally:
        status.clear()
    if output:
        write_check(output, result)
    if html:
        write_whole(html, to_html(result))
    if as_json:
        print(result.model_dump_json(indent=2))
    else:
        for line in lines_of(result, shutil.get_terminal_size().columns):
            echo(line)
        for path in filter(None, (html, output)):
            echo(str(path))
    if not result.is_fit:
        sys.exit(UNFIT)
