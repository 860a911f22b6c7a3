from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from dragoman.cli.arguments import Average, Beam, CheckpointName, Run


def evaluate(
    run: Run,
    split: Annotated[str, typer.Option(help="test or validation.")] = "test",
    checkpoint: CheckpointName = "best",
    average: Average = 1,
    beam: Beam = None,
) -> None:
    """Translate a held-out set and score it with sacreBLEU.

    Example: dragoman evaluate runs/demo --split test
    """
    from dragoman.console import Progress, echo
    from dragoman.evaluation.run import evaluate_run
    from dragoman.rundir import RunDir

    @contextmanager
    def show_progress(total: int) -> Iterator[Callable[[int], None]]:
        with Progress(f"translating {split}", unit="sentences", total=total) as progress:
            yield progress.advance

    scored = evaluate_run(RunDir(run), split, checkpoint, average, beam, show_progress)
    steps = " + ".join(f"{step:,}" for step in scored.steps)
    echo(f"{split}, {scored.sentences:,} sentences, beam {scored.beam}, weights of step {steps}:")
    interval = f"({scored.bleu_low:.1f} to {scored.bleu_high:.1f})"
    echo(f"  BLEU {scored.bleu:.1f} {interval}  {scored.bleu_signature}")
    echo(f"  chrF {scored.chrf:.1f}  {scored.chrf_signature}")
