"""The command line: one thin file per command. Heavy modules are imported inside a command."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.cli.check import check
from dragoman.cli.compare import compare
from dragoman.cli.config import config
from dragoman.cli.demo import demo
from dragoman.cli.evaluate import evaluate
from dragoman.cli.export import export
from dragoman.cli.inspect import inspect
from dragoman.cli.lab import lab
from dragoman.cli.plan import plan
from dragoman.cli.prepare import prepare
from dragoman.cli.rehearse import rehearse
from dragoman.cli.report import report
from dragoman.cli.serve import serve
from dragoman.cli.setup import setup
from dragoman.cli.train import train
from dragoman.cli.translate import translate
from dragoman.cli.verify_resume import verify_resume
from dragoman.cli.watch import watch
from dragoman.console import console_output, open_missing_streams
from dragoman.errors import DragomanError, FailedElsewhereError, UserError

app = typer.Typer(
    help="Train translation models across machines, with a diagnosis of every run.",
    epilog="Start with: dragoman demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(demo, config, prepare, setup, check, plan, train, verify_resume),
    *(watch, report, compare, evaluate, translate, serve, export, inspect),
):
    app.command()(command)
app.command(hidden=True)(rehearse)
app.add_typer(lab, name="lab")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the program itself, before any command."""


def check_arguments(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UserError(
                f"{argument!r}: is not valid UTF-8, the encoding of all files of a run; "
                "rename the file or folder"
            ) from None


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but unhealthy, 75 preempted (rerun)."""
    open_missing_streams()
    # Paths, settings and sentences are written to files in UTF-8, and to a screen of any encoding.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with console_output():
            check_arguments(sys.argv[1:])
            app()
    except DragomanError as error:
        if not isinstance(error, FailedElsewhereError):
            print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output is gone, as in `dragoman translate ... | head`.
        _write_no_more()
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            if error.errno != errno.ENOSPC:  # nothing that a user can act on
                raise
            _write_no_more()
        what = f"{os.fsdecode(error.filename or 'standard output')}: {error.strerror}"
        print(f"error: {what}; check the name and its permissions", file=sys.stderr, flush=True)
        sys.exit(1)


def _write_no_more() -> None:
    """Keeps Python from writing the rest at exit, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
