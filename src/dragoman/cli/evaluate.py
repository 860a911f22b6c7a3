import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import (
    Average,
    Beam,
    CheckpointName,
    Engine,
    Precision,
    RunOrCheckpoint,
    local_folder,
)
from dragoman.cli.termination import orderly_termination

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.evaluation.parallel_text import ParallelText
    from dragoman.evaluation.scores import Comparison, ScoredSplit

SPLIT, COLUMNS = "test", "1,2"


@orderly_termination()
def evaluate(
    run: RunOrCheckpoint,
    split: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A set of the recipe: validation, a test set, or test for all of these.",
        ),
    ] = SPLIT,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Sentences of another set, one a line; with --reference."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="FILE", help="Their reference translations, one a line.")
    ] = None,
    tsv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Another set, as a table with tabs.")
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="S,R", help="Its columns of sentence and reference.")
    ] = COLUMNS,
    sacrebleu: Annotated[
        str | None, typer.Option(metavar="NAME", help="A public test set, such as wmt14/full.")
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name another set; by default that of its file.")
    ] = "",
    against: Annotated[
        Path | None,
        typer.Option(
            parser=local_folder,
            metavar="RUN|FILE",
            help="Compare with another run, or with a file of translations, sentence by sentence.",
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Also BLEU of lower-cased text in Moses tokens.")
    ] = False,
    comet: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Also COMET, with this model on disk.")
    ] = None,
    comet_python: Annotated[
        Path | None,
        typer.Option(
            metavar="PYTHON", help="The interpreter of the environment that COMET is installed in."
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option(min=0, max=100_000, help="How many of the worst translations to show.")
    ] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the scores as JSON, as they are kept in the run.")
    ] = False,
    checkpoint: CheckpointName = "best",
    average: Average = 1,
    beam: Beam = None,
    engine: Engine = "auto",
    precision: Precision = "float32",
) -> None:
    """Translate a held-out set and score it with BLEU, chrF and TER.

    Example: dragoman evaluate runs/demo --split validation --against runs/other

    Another set: dragoman evaluate runs/demo --source news.en --reference news.de
    """
    from dragoman.checkpoints.located import run_and_checkpoint
    from dragoman.config import load_config
    from dragoman.console import Progress, echo, log_to_stderr, visible
    from dragoman.errors import UserError
    from dragoman.evaluation.comet import Comet
    from dragoman.evaluation.run import Extras, Weights, evaluate_run

    log_to_stderr()  # standard output has the scores alone
    if comet_python and not comet:
        raise UserError("--comet-python needs --comet: the model that it runs")
    directory, checkpoint = run_and_checkpoint(run, checkpoint, average)
    if not directory.config.exists():
        raise UserError(f"{run}: no such run; runs are kept in the folder runs by default")
    texts = _chosen_texts(
        load_config(directory.config), split, source, reference, tsv, columns, sacrebleu, name
    )

    @contextmanager
    def show_progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
        title = f"translating {name}"
        with Progress(title, "sentences", total) as progress, progress.ticking():
            yield progress.advance

    weights = Weights(checkpoint, average, beam, engine, precision)
    with_comet = Comet(comet, comet_python or Path(sys.executable)) if comet else None
    extras = Extras(published, with_comet, against, worst)
    scores = evaluate_run(directory, texts, weights, extras, show_progress)
    if as_json:
        written = [scored.model_dump(mode="json") for scored in scores]
        print(json.dumps(written if len(written) > 1 else written[0], indent=2, ensure_ascii=False))
        return
    for number, scored in enumerate(scores):
        for line in ["", *score_lines(scored)] if number else score_lines(scored):
            echo(visible(line))


def score_lines(scored: "ScoredSplit") -> list[str]:
    """Returns what a person reads of the scores."""
    steps = " + ".join(f"{step:,}" for step in scored.steps)
    lines = [
        f"{scored.split}, {scored.sentences:,} sentences, beam {scored.beam}, weights of step "
        f"{steps}; in parentheses 95 % intervals:"
    ]
    wide = max(len(metric.name) for metric in scored.metrics)
    for metric in scored.metrics:
        digits = 3 if metric.name == "COMET" else 1
        low, high = (format(bound, f".{digits}f") for bound in (metric.low, metric.high))
        note = ", lower is better" if metric.name == "TER" else ""
        lines.append(
            f"  {metric.name:<{wide}} {metric.score:.{digits}f} ({low} to {high}{note})  "
            f"{metric.signature}"
        )
    if len(scored.by_length) > 1:
        lines += ["", "BLEU by length of the reference:"]
        for group in scored.by_length:
            span = f"{group.least_words} to {group.most_words}" if group.most_words else "more"
            lines.append(
                f"  {span:>8} words  {group.bleu:5.1f} ({group.low:.1f} to {group.high:.1f})  "
                f"{group.sentences:,} sentence(s)"
            )
    if scored.comparison:
        lines += ["", *_comparison_lines(scored.comparison)]
    if scored.worst:
        lines += ["", "Furthest from the reference, by chrF:"]
        for bad in scored.worst:
            lines += [
                f"  line {bad.line:,}, chrF {bad.chrf:.1f}",
                f"    source       {bad.source}",
                f"    translation  {bad.translation}",
                f"    reference    {bad.reference}",
            ]
    return lines


def _comparison_lines(comparison: "Comparison") -> list[str]:
    words = {True: "better", False: "worse", None: "no difference can be told"}
    return [
        f"Against {comparison.other}, by paired resampling:",
        *(
            f"  {metric.name:<4} {metric.gain:+.2f} to its {metric.other:.1f} "
            f"({metric.low:+.2f} to {metric.high:+.2f}), p = {metric.p:.2g}: "
            f"{words[metric.is_better]}"
            for metric in comparison.metrics
        ),
    ]


def _chosen_texts(
    config: "Config",
    split: str,
    source: str | None,
    reference: str | None,
    tsv: str | None,
    columns: str,
    sacrebleu: str | None,
    name: str,
) -> "list[ParallelText]":
    """Returns the sets that the options name: those of the recipe, or another one."""
    from dragoman.errors import UserError
    from dragoman.evaluation.parallel_text import from_files, from_sacrebleu, from_table, of_recipe

    files = source if source is not None else reference
    sets = sum(option is not None for option in (files, tsv, sacrebleu))
    if sets > 1:
        raise UserError("name one set: --source with --reference, --tsv, or --sacrebleu")
    if sets and split != SPLIT:
        raise UserError(f"--split {split} is a set of the recipe, and another was named; leave one")
    if name and not sets:
        raise UserError(
            f"--name {name}: sets of the recipe have their names; it goes with --source, --tsv or "
            "--sacrebleu"
        )
    if columns != COLUMNS and tsv is None:
        raise UserError(f"--columns {columns}: needs --tsv, the table that has them")
    if source is not None and reference is not None:
        return [from_files(config, source, reference, name)]
    if source is not None or reference is not None:
        given, missing = ("--source", "--reference") if source else ("--reference", "--source")
        raise UserError(f"{given} needs {missing}: sentences and their references, line by line")
    if tsv is not None:
        return [from_table(config, tsv, _columns(columns), name)]
    if sacrebleu is not None:
        return [from_sacrebleu(config, sacrebleu, name)]
    return of_recipe(config, split)


def _columns(text: str) -> tuple[int, int]:
    from dragoman.errors import UserError

    parts = [part.strip() for part in text.split(",")]
    # Python refuses to convert thousands of digits, and no table has so many columns.
    if len(parts) != 2 or not all(part.isdecimal() and len(part) <= 9 for part in parts):
        raise UserError(f"--columns {text}: should be two numbers that count from 1, as in 1,2")
    return int(parts[0]), int(parts[1])
