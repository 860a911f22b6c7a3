"""One sentence in two languages."""

from typing import NamedTuple


class Pair(NamedTuple):
    """One sentence in two languages."""

    source: str
    target: str
