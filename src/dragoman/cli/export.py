from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.arguments import Average, CheckpointName, Precision, RunOrCheckpoint
from dragoman.cli.termination import orderly_termination


@orderly_termination()
def export(
    run: RunOrCheckpoint,
    folder: Annotated[
        Path, typer.Argument(help="A new or empty folder to write to.", metavar="DIR")
    ],
    to: Annotated[
        Literal["ctranslate2", "huggingface", "argos", "safetensors"],
        typer.Option("--to", help="The format: which tool shall load the model."),
    ],
    checkpoint: CheckpointName = "best",
    average: Average = 1,
    precision: Precision = "float32",
    license_name: Annotated[
        str,
        typer.Option("--license", metavar="NAME", help="License of the model, for its card."),
    ] = "",
) -> None:
    """Write a trained model with tokenizer and model card in a format that another tool loads.

    Example: dragoman export runs/demo --to huggingface exported/demo
    """
    from dragoman.checkpoints.located import run_and_checkpoint
    from dragoman.console import echo, waiting

    with waiting(f"exporting to {folder}", on_terminal_only=True):
        from dragoman.export.run import export_run

        directory, checkpoint = run_and_checkpoint(run, checkpoint, average)
        steps = export_run(directory, to, folder, checkpoint, average, precision, license_name)
    echo(f"{folder} (weights of step {' + '.join(f'{step:,}' for step in steps)})")
    echo(f"How to load it is at the end of {folder / 'README.md'}.")
