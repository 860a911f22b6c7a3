from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Hosts, Overrides

Recipe = Annotated[
    Path | None,
    typer.Argument(
        help="A recipe file, or the name of a shipped recipe, such as demo.", metavar="RECIPE"
    ),
]
CheckFile = Annotated[
    Path | None,
    typer.Option("--check", metavar="FILE", help="Forecast from what `dragoman check` wrote."),
]
Assume = Annotated[
    str,
    typer.Option(
        "--assume",
        metavar="WORDS",
        help="Describe the cluster: '4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.5/h'.",
    ),
]
Simulate = Annotated[
    Path | None,
    typer.Option(
        "--simulate", metavar="FILE", help="Simulate a cluster of up to 100,000 nodes from a file."
    ),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with plots.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        import json

        from dragoman.plan.content import plan_schema

        print(json.dumps(plan_schema(), indent=2))
        raise typer.Exit


JsonSchema = Annotated[
    bool,
    typer.Option(
        "--json-schema",
        is_eager=True,
        callback=_print_schema,
        help="Print the JSON schema of the plan and exit.",
    ),
]


def plan(
    recipe: Recipe = None,
    hosts: Hosts = "",
    check: CheckFile = None,
    assume: Assume = "",
    simulate: Simulate = None,
    html: Html = None,
    as_json: AsJson = False,
    json_schema: JsonSchema = False,
    overrides: Overrides = None,
) -> None:
    """Forecast a run before it is paid for: step, hours, money, memory, and what would help.

    Example: dragoman plan wmt16-en-de --assume "4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.5/h"
    """
    from dragoman.config import load_config
    from dragoman.console import StatusLine, echo
    from dragoman.errors import UserError
    from dragoman.rundir import ensure_writable, write_whole

    if recipe is None:
        raise UserError(
            'name a recipe, as in: dragoman plan demo --assume "2 nodes, 1gbit, 14 TFLOP/s"'
        )
    config = load_config(recipe, overrides or ())
    if simulate:
        if hosts or check or assume or html:
            raise UserError(
                "--simulate FILE describes the whole cluster; leave --hosts, --check, --assume and "
                "--html out"
            )
        from dragoman.plan.simulation import simulate_file

        simulated = simulate_file(config, simulate)
        print(simulated.model_dump_json(indent=2)) if as_json else echo(simulated.text())
        return
    from dragoman.plan.page import to_html
    from dragoman.plan.source import plan_for
    from dragoman.plan.terminal import terminal_text

    if html:
        if html.is_dir():
            raise UserError(f"{html}: is a folder; name a file")
        ensure_writable(html)
    status = StatusLine(plain_every_s=0.0, to_stderr=True)
    try:
        found = plan_for(config, hosts=hosts, check=check, assume=assume, tell=status.show)
    finally:
        status.clear()
    if html:
        write_whole(html, to_html(found))
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        echo(terminal_text(found))
        if html:
            echo(f"\n{html}")
