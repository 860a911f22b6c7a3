from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import local_folder
from dragoman.cli.reading import reading

if TYPE_CHECKING:
    from dragoman.comparison.aspects import Aspect, Row, Value

# Lists of files and the like can be long; --json prints them in full.
MOST_LETTERS = 48


def compare(
    first: Annotated[
        Path, typer.Argument(parser=local_folder, help="The folder of a run.", metavar="RUN")
    ],
    second: Annotated[
        Path, typer.Argument(parser=local_folder, help="The folder of another run.", metavar="RUN")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show what differed between two runs: settings, data, machines, speed, quality and cost.

    Example: dragoman compare runs/multi30k runs/multi30k-bf16
    """
    import dataclasses
    import json

    from dragoman.comparison.compare import compare as compare_runs
    from dragoman.console import echo
    from dragoman.rundir import RunDir

    with reading(first, second) as progress:
        found = compare_runs(RunDir(first), RunDir(second), progress)
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False, allow_nan=False))
        return
    echo(f"first   {found.a}\nsecond  {found.b}")
    for aspect in found.aspects:
        echo(f"\n{aspect.title}")
        for line in _lines(aspect):
            echo(f"  {line}")


def _lines(aspect: "Aspect") -> list[str]:
    lines = []
    if aspect.rows:
        rows = [
            (row.what, _text(row.a, row.unit), _text(row.b, row.unit), _ratio(row))
            for row in aspect.rows
        ]
        lines = _aligned([("", "first", "second", ""), *rows])
    return [*lines, *aspect.sentences]


def _text(value: "Value", unit: str) -> str:
    from dragoman.diagnosis.phrasing import quantity

    if value is None:
        return "-"
    if isinstance(value, bool | str):
        text = str(value).lower() if isinstance(value, bool) else value or '""'
        return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
    return quantity(value, unit)


def _ratio(row: "Row") -> str:
    return "" if row.ratio is None else f"x {row.ratio:.2f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
