"""Which pairs are not worth learning from, and why."""

from dragoman.corpus.sources import Pair


def reason_to_drop(pair: Pair) -> str | None:
    """Why this pair should not be kept, as a short name to count under; None: keep it."""
    if not pair.source and not pair.target:
        return "both sides empty"
    if not pair.source:
        return "source empty"
    if not pair.target:
        return "target empty"
    return None
