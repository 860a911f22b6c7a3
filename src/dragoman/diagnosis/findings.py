"""What an answer consists of: a verdict, its confidence and health, and the figures behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Confidence = Literal["high", "medium", "low", "none"]
"""none: the verdict is that nothing can be said, and the sentence says why."""

UNKNOWN = "not known"

Health = Literal["good", "watch", "poor", "open", "fact"]
"""How a verdict is to be taken. open: nothing can be said yet. fact: neither good nor bad."""

# Never by color alone: each has a sign and a word too.
HEALTH_SIGNS: Mapping[Health, str] = {
    "good": "✓",
    "watch": "▲",
    "poor": "✕",
    "open": "?",
    "fact": "•",
}
HEALTH_WORDS: Mapping[Health, str] = {
    "good": "good",
    "watch": "worth a look",
    "poor": "needs action",
    "open": "open",
    "fact": "a figure",
}


@dataclass(frozen=True)
class Figure:
    name: str
    value: float | int | str | None
    unit: str
    """s, bytes, bytes/s, share (0 to 1), steps, tokens, nats, BLEU, ...; empty: a pure number or a
    word."""
    low: float | None = None
    """With `high`: a 95 % interval."""
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Finding:
    verdict: str
    """A few words, one of those that the module of the question lists; shown on a card."""
    confidence: Confidence
    sentence: str
    """The answer in plain words, with its most important figures."""
    evidence: Sequence[Figure]
    advice: str = ""
    """What to do about it; empty: nothing needs to be done."""


def unknown(because: str, evidence: Sequence[Figure] = ()) -> Finding:
    """Returns a finding without an answer; `because` follows "Not known, because"."""
    return Finding(UNKNOWN, "none", f"Not known, because {because}.", evidence)


def recorded(*figures: Figure | None) -> list[Figure]:
    """Returns the figures that have a value: None and NaN stand for what was not recorded."""
    # NaN alone is not equal to itself.
    return [f for f in figures if f and f.value is not None and f.value == f.value]
