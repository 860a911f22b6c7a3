"""The command line: one file a command, thin. What is heavy is imported inside a command."""

import errno
import os
import sys
from collections.abc import Sequence

import typer

from dragoman.cli.compare import compare
from dragoman.cli.config import config
from dragoman.cli.demo import demo
from dragoman.cli.evaluate import evaluate
from dragoman.cli.inspect import inspect
from dragoman.cli.lab import lab
from dragoman.cli.prepare import prepare
from dragoman.cli.report import report
from dragoman.cli.setup import setup
from dragoman.cli.train import train
from dragoman.cli.translate import translate
from dragoman.cli.verify_resume import verify_resume
from dragoman.console import console_output, open_missing_streams
from dragoman.errors import DragomanError, FailedElsewhereError, UserError

app = typer.Typer(
    help="Dragoman trains translation models across machines and guides you through the run.",
    epilog="Start with: dragoman demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(demo, config, prepare, setup, train, verify_resume),
    *(report, compare, evaluate, translate, inspect),
):
    app.command()(command)
app.add_typer(lab, name="lab")


def check_arguments(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UserError(
                f"{argument!r}: is not valid UTF-8, which all files of a run are written in; "
                "rename what it stands for"
            ) from None


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but unhealthy, 75 preempted: go on."""
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
        # Whoever read our output has enough, as in `dragoman translate ... | head`.
        _write_no_more()
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            if error.errno != errno.ENOSPC:  # nothing that a user can do something about
                raise
            _write_no_more()
        what = f"{os.fsdecode(error.filename or 'standard output')}: {error.strerror}"
        print(f"error: {what}; check the name and the right to use it", file=sys.stderr, flush=True)
        sys.exit(1)


def _write_no_more() -> None:
    """Python would try once more to write what is left, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
