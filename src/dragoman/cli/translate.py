import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, TypeVar, cast

import typer

from dragoman.cli.arguments import Average, Beam, Engine, Precision, RunOrCheckpoint, local_folder
from dragoman.cli.termination import orderly_termination

if TYPE_CHECKING:
    from dragoman.decoding.glossary import Glossary
    from dragoman.decoding.translator import Translator
    from dragoman.documents.translation import Translate

QUIET_S = 2.0
_Result = TypeVar("_Result")


@orderly_termination()
def translate(
    run: RunOrCheckpoint,
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences to translate; by default the lines of standard input."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Translate this file: text, or compressed text."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of standard output."),
    ] = None,
    lines: Annotated[
        Literal["split", "whole", "wrapped"],
        typer.Option(
            help="What a line is: some sentences (split), exactly one, as in test sets (whole), or "
            "a part of a paragraph (wrapped)."
        ),
    ] = "split",
    column: Annotated[
        str,
        typer.Option(
            metavar="NAME|N", help="The input is a table: translate this column, add another."
        ),
    ] = "",
    key: Annotated[
        str, typer.Option(metavar="NAME", help="The input is JSON Lines: translate this key.")
    ] = "",
    output_key: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Key of the translation in JSON Lines, heading of its column in a table.",
        ),
    ] = "",
    n_best: Annotated[
        int, typer.Option("--n-best", min=1, max=100, help="Print the best N of each sentence.")
    ] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Print scores of sentences.")] = False,
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Print which words belong together, as 0-0 1-2.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print an object for each line, with its sentences.")
    ] = False,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="All translations of sentences begin with this.")
    ] = "",
    prefixes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Translations of lines begin with the lines of this."),
    ] = None,
    glossary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Terms and how they must be translated.")
    ] = None,
    with_runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            parser=local_folder,
            metavar="RUN",
            help="Another run of an ensemble; repeatable.",
        ),
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="best (by default), latest, or a step number; repeatable for an ensemble."
        ),
    ] = None,
    average: Average = 1,
    beam: Beam = None,
    engine: Engine = "auto",
    precision: Precision = "float32",
) -> None:
    """Translate text with a trained model: sentences, lines, tables or JSON Lines.

    Example: echo "The old baker sleeps." | dragoman translate runs/demo

    A file: dragoman translate runs/demo -i news.en.gz -o news.de.gz
    """
    from dragoman.cli.dialog import candidate_list, hold_dialog
    from dragoman.console import log_to_stderr, waiting
    from dragoman.corpus.text import (
        about_lines,
        decode_lines,
        open_binary,
        read_lines,
        read_raw_lines,
    )
    from dragoman.decoding.glossary import Glossary
    from dragoman.decoding.translator import Translator
    from dragoman.documents.form import Form, check_form, read_records
    from dragoman.documents.layout import take_apart
    from dragoman.documents.translation import RECORDS_AT_ONCE, translate_records, translate_texts
    from dragoman.errors import UserError

    log_to_stderr()
    is_detailed = n_best > 1 or scores or alignment or as_json
    form = Form(lines, column, key, output_key, is_detailed, as_json, alignment)
    standard_input = cast("TextIO | None", sys.stdin)
    if not sentences and not file and standard_input is None:
        raise UserError("standard input is closed; name sentences or a file to translate")
    is_typed = not sentences and not file and sys.stdin.isatty()
    is_dialog = is_typed and sys.stdout.isatty() and not (output or column or key)
    if sentences and (file or column or key):
        raise UserError("sentences and a file were both given; use one of them")
    check_form(form, str(file) if file else "")
    if prefixes and (prefix or lines == "wrapped" or is_typed):
        raise UserError("--prefixes has a line for each line of a file, and no --prefix beside it")
    runs = [run, *(with_runs or [])]
    if output:
        _check_output(output, [path for path in (file, prefixes, glossary) if path], runs)

    if file:
        with open_binary(file):  # before the model is loaded
            pass
    terms = Glossary.load(glossary) if glossary else None
    with waiting("loading the model", to_stderr=True, on_terminal_only=True):
        translator = Translator.load(
            runs, checkpoint or ["best"], average=average, engine=engine, precision=precision
        )
    source_language, target_language = _languages(run)
    meter = _Meter(about_lines(file) if file else None)
    search = meter.of_search(
        _search(translator, n_best, is_detailed, alignment, beam, prefix, terms, meter.done)
    )
    split = partial(take_apart, language=source_language, lines=lines)

    if is_dialog:
        (record,) = read_records([""], "", form, target_language)
        shown = candidate_list if is_detailed and not as_json else record.write
        hold_dialog(meter.of_each(lambda line: translate_texts([line], split, search)[0]), shown)
        return
    if sentences:
        # Each argument is a text of its own, also where lines are wrapped.
        records = read_records(sentences, "", form._replace(lines="whole"), target_language)
    elif file:
        of_file = meter.of_lines(read_raw_lines(file))
        records = read_records(of_file, str(file), form, target_language)
    else:
        if is_typed:
            print("Type a sentence and press Enter; Ctrl-D quits.", file=sys.stderr)
        typed = decode_lines(cast(BufferedReader, sys.stdin.buffer), "standard input")
        records = read_records(typed, "standard input", form, target_language)
    of_lines = read_lines(prefixes) if prefixes else None
    at_once = 1 if is_typed else RECORDS_AT_ONCE
    with _writing(output) as write:
        for written in translate_records(records, split, search, of_lines, at_once):
            meter.status.clear()
            meter.records += written.records
            meter.sentences += written.sentences
            write(written.text)
    meter.status.clear()
    if output or (sys.stderr.isatty() and (file or not sys.stdout.isatty())):
        unit = "blocks" if lines == "wrapped" else "lines"
        print(meter.summary(unit, translator.engine.description), file=sys.stderr)


class _Meter:
    """Counts what is translated, and shows speed and time left while it takes long.

    On a terminal always, elsewhere as a line now and then for files, whose end is known.
    """

    def __init__(self, lines: int | None = None) -> None:
        """`lines` is about how many the input has; None: that is not known."""
        from dragoman.console import PLAIN_EVERY_S, StatusLine

        self.status = StatusLine(PLAIN_EVERY_S, to_stderr=True)
        self.records, self.sentences = 0, 0
        self._lines, self._lines_read = lines, 0
        self._taken = 0  # sentences of the lines that were read
        self._done, self._begun = 0, time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def of_lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines and counts them."""
        for line in lines:
            self._lines_read += 1
            yield line

    def of_search(self, search: "Translate") -> "Translate":
        """Returns a function that also counts the sentences that are to be translated."""

        def counted(sentences: Sequence[str], prefixes: Sequence[str]) -> Any:
            self._taken += len(sentences)
            return search(sentences, prefixes)

        return counted

    def done(self, sentences: int) -> None:
        from dragoman.console import duration

        self._done += sentences
        seconds = time.monotonic() - self._begun
        if seconds <= QUIET_S or not self.status.is_due():
            return
        rate = self._done / seconds
        total = self._total()
        if total is not None and total > self._done > 0:
            about = "" if self._lines == self._lines_read else "about "
            self.status.show(
                f"translating: {self._done:,} of {about}{total:,} sentences "
                f"({rate:,.0f} sentences/s), about {duration((total - self._done) / rate)} left"
            )
        elif self._is_terminal:
            self.status.show(f"translating: {self._done:,} sentences ({rate:,.0f} sentences/s)")

    def _total(self) -> int | None:
        """Returns how many sentences there are if lines to come have as many as those read."""
        if not self._lines or not self._lines_read:
            return None
        return round(self._taken * max(1.0, self._lines / self._lines_read))

    def of_each(self, translate: Callable[[str], _Result]) -> Callable[[str], _Result]:
        """Returns a function that counts from the beginning for each text, and clears the line."""

        def translate_one(text: str) -> _Result:
            self._done, self._begun = 0, time.monotonic()
            try:
                return translate(text)
            finally:
                self.status.clear()

        return translate_one

    def summary(self, unit: str, engine: str) -> str:
        seconds = time.monotonic() - self._begun
        rate = self.sentences / max(seconds, 1e-9)
        return (
            f"{self.records:,} {unit}, {self.sentences:,} sentences in {seconds:.1f} s "
            f"({rate:,.0f} sentences/s) with {engine}"
        )


def _languages(run: Path) -> tuple[str, str]:
    """Returns source and target language; empty for a folder of checkpoints without its run."""
    from dragoman.checkpoints.located import locate
    from dragoman.checkpoints.schema import read_state
    from dragoman.config import load_config

    located = locate(run)
    if located.run is None:
        state = read_state(run)
        return state.source_language, state.target_language
    if not located.run.config.exists():
        return "", ""
    data = load_config(located.run.config).data
    return data.source_language, data.target_language


def _search(
    translator: "Translator",
    n_best: int,
    is_detailed: bool,
    is_aligned: bool,
    beam: int | None,
    prefix: str,
    glossary: "Glossary | None",
    done: Callable[[int], None],
) -> "Translate":
    """Returns a function from sentences to candidates."""
    from dragoman.documents.record import BestText, Candidate

    def search(sentences: Sequence[str], prefixes: Sequence[str]) -> list[Sequence[Candidate]]:
        options: dict[str, Any] = {"beam": beam, "glossary": glossary, "done": done}
        if prefix or any(prefixes):
            options["prefixes"] = [prefix] * len(sentences) if prefix else prefixes
        if not is_detailed:  # without scores, greedy search is faster
            return [[BestText(text)] for text in translator.translate(sentences, **options)]
        found = translator.translations(sentences, candidates=n_best, aligned=is_aligned, **options)
        return [translation.candidates for translation in found]

    return search


def _check_output(output: Path, inputs: Sequence[Path], runs: Sequence[Path]) -> None:
    """Refuses, before the work, an output that would overwrite what is needed."""
    from dragoman.checkpoints.located import locate
    from dragoman.documents.output import check_output, mode_of
    from dragoman.errors import UserError
    from dragoman.rundir import is_own_file

    check_output(output)
    mode = mode_of(output)
    for path in inputs:
        # A terminal may be both.
        if path.exists() and mode and not stat.S_ISCHR(mode) and output.samefile(path):
            raise UserError(f"{output}: is also read; name another file with --output")
    for run in runs:
        directory = locate(run).run
        is_own = (
            is_own_file(directory, output)
            if directory
            else output.resolve().is_relative_to(run.resolve())
        )
        if is_own:
            raise UserError(
                f"{output}: is part of the run {run} itself; name another file with --output"
            )


@contextmanager
def _writing(output: Path | None) -> Iterator[Callable[[str], None]]:
    """Yields a function that writes text to a file, or to standard output at once."""
    from dragoman.documents.output import whole_file

    if output is None:
        yield lambda text: print(text, end="", flush=True)
        return
    with whole_file(output) as write:
        yield write
