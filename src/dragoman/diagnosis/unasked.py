"""What nobody asks and should know: each finding is there only when there is something to say."""

from collections.abc import Callable, Mapping

from dragoman.diagnosis.answers import (
    faults,
    hangs,
    loss_spikes,
    memory,
    padding,
    quality,
    stragglers,
)
from dragoman.diagnosis.findings import Finding, unknown
from dragoman.diagnosis.questions import because_of
from dragoman.diagnosis.run.facts import RunFacts

_FINDINGS: Mapping[str, tuple[str, Callable[[RunFacts], Finding | None]]] = {
    "faults": (faults.QUESTION, faults.finding),
    "hangs": (hangs.QUESTION, hangs.finding),
    "stragglers": (stragglers.QUESTION, stragglers.finding),
    "spikes": (loss_spikes.QUESTION, loss_spikes.finding),
    "memory": (memory.QUESTION, memory.finding),
    "padding": (padding.QUESTION, padding.finding),
    "quality": (quality.QUESTION, quality.finding),
}


def unasked_of(run: RunFacts) -> list[Finding]:
    """The most expensive kinds of trouble first."""
    found = (_finding(key, run) for key in _FINDINGS)
    return [finding for finding in found if finding]


def _finding(key: str, run: RunFacts) -> Finding | None:
    question, look = _FINDINGS[key]
    try:
        return look(run)
    except Exception as error:  # whatever a damaged record leads to
        return unknown(key, question, because_of(error))
