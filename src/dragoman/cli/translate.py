import stat
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dragoman.cli.arguments import Average, Beam, CheckpointName, Run

if TYPE_CHECKING:
    from dragoman.rundir import RunDir

LINES_AT_ONCE = 2000
CHARACTERS_AT_ONCE = 1_000_000


def translate(
    run: Run,
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences to translate; by default the lines of standard input."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--input", "-i", help="Translate the lines of this file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of standard output."),
    ] = None,
    checkpoint: CheckpointName = "best",
    average: Average = 1,
    beam: Beam = None,
) -> None:
    """Translate text with a trained model, line by line.

    Example: echo "The old baker sleeps." | dragoman translate runs/demo
    """
    from dragoman.console import Progress
    from dragoman.corpus.text import decode_lines, read_lines
    from dragoman.decoding.translator import Translator
    from dragoman.errors import UserError
    from dragoman.rundir import RunDir

    if sentences and file:
        raise UserError("sentences and --input were both given; use one of them")
    directory = RunDir(run)
    if output:
        _check_output(output, file, directory)
    translator = Translator.load(run, checkpoint, average=average)

    lines: Iterator[str]
    at_once = LINES_AT_ONCE
    if sentences:
        lines = iter(sentences)
    elif file:
        lines = read_lines(file)
    else:
        lines = decode_lines(cast(BufferedReader, sys.stdin.buffer), "standard input")
        if sys.stdin.isatty():
            print("Type a sentence and press Enter; Ctrl-D quits.", file=sys.stderr)
            at_once = 1

    translated: list[str] = []
    with Progress("translating", unit="sentences", to_stderr=True) as progress:
        for batch in _batches(lines, at_once):
            texts = translator.translate(batch, beam=beam, done=progress.advance)
            if output:
                translated += texts
            else:
                print("\n".join(texts), flush=True)
    if output:
        _write(output, "".join(f"{text}\n" for text in translated))


def _check_output(output: Path, file: Path | None, run: "RunDir") -> None:
    """Refuses, before the work, an output that would overwrite what is needed."""
    from dragoman.errors import UserError
    from dragoman.rundir import is_own_file

    mode = _mode_of(output)
    if stat.S_ISDIR(mode):
        raise UserError(f"{output}: is a folder; name a file with --output")
    # A terminal may be both.
    if file and file.exists() and mode and not stat.S_ISCHR(mode) and output.samefile(file):
        raise UserError(f"{output}: is also --input; name another file with --output")
    if is_own_file(run, output):
        raise UserError(
            f"{output}: is part of the run {run.root} itself; name another file with --output"
        )


def _write(output: Path, text: str) -> None:
    """Writes the file atomically, also behind a link; writes to a pipe or a device in place."""
    from dragoman.errors import storage_errors
    from dragoman.rundir import write_whole

    mode = _mode_of(output)
    if mode and not stat.S_ISREG(mode):
        with storage_errors(output, "writing translations"), output.open("wb") as file:
            file.write(text.encode())
    else:
        write_whole(output.resolve(), text)


def _mode_of(path: Path) -> int:
    """Returns the file mode of `path`, with links followed; 0 if there is nothing yet."""
    from dragoman.errors import storage_errors

    with storage_errors(path, "writing translations"):
        try:
            return path.stat().st_mode
        except FileNotFoundError:
            return 0


def _batches(lines: Iterator[str], at_once: int) -> Iterator[list[str]]:
    """Yields batches of lines that fit into memory, however long the lines are."""
    batch: list[str] = []
    characters = 0
    for line in lines:
        batch.append(line)
        characters += len(line)
        if len(batch) == at_once or characters > CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
