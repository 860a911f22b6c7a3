"""Text from the source comes in, Markdown that shows it as it is goes out."""

import re
from collections.abc import Iterable, Sequence


def prose(text: str) -> str:
    """Returns text in one line, where only words in backticks are marked up."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part.replace("|", "\\|")
        if part.startswith("`")
        else re.sub(r"([\[*_|])", r"\\\1", part).replace("<", "&lt;")  # MkDocs knows no \<
        for part in parts
    )


def code(text: str) -> str:
    """Returns text as code within a cell of a table; nothing for no text."""
    return f"`{' '.join(text.split())}`".replace("|", "\\|") if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table whose cells are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
