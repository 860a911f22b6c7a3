"""Corpora that change, and prepared data, compared byte by byte."""

from pathlib import Path

from dragoman.shards.passport import PreparedData


def content(prepared: PreparedData) -> dict[str, bytes]:
    """Everything that the passport vouches for."""
    files = [f.name for split in prepared.passport.splits.values() for f in split.shards]
    files.append(prepared.passport.tokenizer_file)
    return {name: (prepared.folder / name).read_bytes() for name in files}


def nothing(count: int) -> None:
    """Shows no progress."""


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
