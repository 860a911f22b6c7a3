import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.reading import reading

if TYPE_CHECKING:
    from dragoman.rundir import RunDir

RunOrMirror = Annotated[
    str,
    typer.Argument(
        help="The folder of a run, such as runs/demo, or its mirror, such as s3://bucket/runs/demo.",
        metavar="RUN",
    ),
]

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
    run: RunOrMirror,
    as_json: AsJson = False,
    json_schema: JsonSchema = False,
    trace: WithTrace = False,
    trace_steps: TraceSteps = "",
) -> None:
    """Answer eleven questions about a run, finished or not: report.html, report.md, report.json.

    Example: dragoman report runs/demo

    The report of a mirror is written to a folder here: report-of-demo.
    """
    from dragoman.console import echo
    from dragoman.report.sections import document_of
    from dragoman.report.terminal import what_to_do
    from dragoman.report.write import read_report, to_json, write_documents
    from dragoman.rundir import RunDir

    steps = _steps(trace_steps)
    with _folders(run) as (read, written_to), reading(read) as progress:
        if read == written_to:
            found = read_report(RunDir(read), progress)
        else:  # a folder that is gone soon names nothing
            named = _returned(read, written_to, is_kept=not as_json)
            found = read_report(RunDir(read), progress, named).model_copy(update={"run": run})
        if as_json:
            print(to_json(found), end="")
        else:
            for path in write_documents(RunDir(written_to), found):
                echo(str(path))
            if to_do := what_to_do(document_of(found)):
                echo(to_do)
        if trace or steps:
            _write_trace(RunDir(read), RunDir(written_to), steps, as_json)


@contextmanager
def _folders(run: str) -> Iterator[tuple[Path, Path]]:
    """Yields where the records of a run are, and where its report goes.

    Those of a mirror are fetched into a folder that is gone afterwards.
    """
    from dragoman.storage.address import is_address

    if not is_address(run):
        yield Path(run), Path(run)
        return
    import tempfile

    from dragoman.checkpoints.mirror import fetch_run
    from dragoman.storage import parse_address

    address = parse_address(run)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / (address.name or "run")
        fetch_run(address, root)
        yield root, Path(f"report-of-{root.name}")


def _returned(read: Path, written_to: Path, is_kept: bool) -> "RunDir":
    """Returns the run as it would be here again: commands of the report begin with its settings,
    which are kept beside the report, and training then fetches the rest from the mirror."""
    from dragoman.rundir import RunDir, write_whole

    class Returned(RunDir):
        @property
        def config(self) -> Path:
            return written_to / "config.toml"

    if is_kept:
        write_whole(written_to / "config.toml", (read / "config.toml").read_bytes())
    return Returned(Path("runs") / read.name)


def _write_trace(
    run: "RunDir", written_to: "RunDir", steps: tuple[int, int] | None, as_json: bool
) -> None:
    from dragoman.console import echo
    from dragoman.report.trace import write_trace

    written = write_trace(run, steps, written_to)
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
