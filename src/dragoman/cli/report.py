from typing import Annotated

import typer

from dragoman.cli.arguments import Run

Timeline = Annotated[
    bool,
    typer.Option("--trace", help="Write trace.json too, a timeline for Perfetto or Chrome."),
]
TimelineSteps = Annotated[
    str,
    typer.Option("--trace-steps", metavar="FIRST-LAST", help="Only these steps in trace.json."),
]


def report(run: Run, trace: Timeline = False, trace_steps: TimelineSteps = "") -> None:
    """Write report.html, report.md and report.json of a run, finished or not.

    Example: dragoman report runs/demo
    """
    from dragoman.console import say
    from dragoman.report.write import write_report
    from dragoman.rundir import RunDir

    steps = _steps(trace_steps)
    for path in write_report(RunDir(run)):
        say(str(path))
    if trace or steps:
        from dragoman.report.trace import write_trace

        written = write_trace(RunDir(run), steps)
        span = f"steps {written.first_step:,} to {written.last_step:,}"
        more = "" if written.is_whole or steps else "; others with --trace-steps FIRST-LAST"
        say(f"{written.path} ({span}{more}; open it at ui.perfetto.dev or chrome://tracing)")


def _steps(text: str) -> tuple[int, int] | None:
    from dragoman.errors import UserError

    if not text:
        return None
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise UserError(f"--trace-steps {text}: write it as FIRST-LAST, for example 1000-1200")
    return int(first), int(last)
