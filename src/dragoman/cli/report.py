import sys
from typing import Annotated

import typer

from dragoman.cli.arguments import Run
from dragoman.cli.reading import reading

WithTrace = Annotated[
    bool,
    typer.Option("--trace", help="Also write trace.json, a timeline for Perfetto or Chrome."),
]
TraceSteps = Annotated[
    str,
    typer.Option(
        "--trace-steps", metavar="FIRST-LAST", help="Write only these steps to trace.json."
    ),
]


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        import json

        from dragoman.report.content import report_schema

        print(json.dumps(report_schema(), indent=2))
        raise typer.Exit


AsJson = Annotated[
    bool, typer.Option("--json", help="Print report.json instead of writing the three files.")
]
JsonSchema = Annotated[
    bool,
    typer.Option(
        "--json-schema",
        is_eager=True,
        callback=_print_schema,
        help="Print the JSON schema of report.json and exit.",
    ),
]


def report(
    run: Run,
    as_json: AsJson = False,
    json_schema: JsonSchema = False,
    trace: WithTrace = False,
    trace_steps: TraceSteps = "",
) -> None:
    """Answer eleven questions about a run, finished or not: report.html, report.md, report.json.

    Example: dragoman report runs/demo
    """
    from dragoman.console import echo
    from dragoman.report.sections import document_of
    from dragoman.report.terminal import what_to_do
    from dragoman.report.write import read_report, to_json, write_documents
    from dragoman.rundir import RunDir

    steps = _steps(trace_steps)
    with reading(run) as progress:
        found = read_report(RunDir(run), progress)
    if as_json:
        print(to_json(found), end="")
    else:
        for path in write_documents(RunDir(run), found):
            echo(str(path))
        if to_do := what_to_do(document_of(found)):
            echo(to_do)
    if trace or steps:
        from dragoman.report.trace import write_trace

        written = write_trace(RunDir(run), steps)
        span = f"steps {written.first_step:,} to {written.last_step:,}"
        more = "" if written.is_whole or steps else "; choose others with --trace-steps FIRST-LAST"
        message = f"{written.path} ({span}{more}; open it at ui.perfetto.dev or chrome://tracing)"
        print(message, file=sys.stderr) if as_json else echo(message)


def _steps(text: str) -> tuple[int, int] | None:
    from dragoman.errors import UserError

    if not text:
        return None
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise UserError(f"--trace-steps {text}: write it as FIRST-LAST, for example 1000-1200")
    return int(first), int(last)
