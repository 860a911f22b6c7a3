"""What an answer consists of: a verdict, its confidence and health, and the figures behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Confidence = Literal["high", "medium", "low", "none"]
"""none: the verdict is that nothing can be said, and the sentence says why."""

UNKNOWN = "not known"
NOT_TOLD = "This cannot be told from what the run has recorded so far."

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
class Advice:
    """One thing to do about a finding, and the line that does it."""

    text: str
    """In words, a sentence: what to do, and why."""
    command: str = ""
    """A command for a shell, or a line of the recipe such as `training.steps = 20000`; either works
    for this run as it stands."""
    saves_s: float | None = None
    """Of the run's wall time, had it been so from the beginning; None: not known."""
    recipe: str = ""
    """The settings of a command for a shell as lines of a recipe, for runs to come; empty: none
    are worth keeping."""


@dataclass(frozen=True)
class Finding:
    verdict: str
    """A few words, one of those that the module of the question lists; shown on a card."""
    confidence: Confidence
    sentence: str
    """The most important figures, and how they are known."""
    evidence: Sequence[Figure]
    advice: Sequence[Advice] = ()
    """What to do about it, the most useful first, at most three; empty: nothing."""
    plain: str = ""
    """The answer in one sentence that a student understands, without any jargon."""

    @property
    def advice_text(self) -> str:
        return " ".join(advice.text for advice in self.advice)


def advised(text: str) -> list[Advice]:
    """Returns one piece of advice in words alone; none where they are empty."""
    return [Advice(text)] if text else []


def unknown(because: str, evidence: Sequence[Figure] = (), plain: str = NOT_TOLD) -> Finding:
    """Returns a finding without an answer; `because` follows "Not known, because"."""
    return Finding(UNKNOWN, "none", f"Not known, because {because}.", evidence, plain=plain)


def recorded(*figures: Figure | None) -> list[Figure]:
    """Returns the figures that have a value: None and NaN stand for what was not recorded."""
    # NaN alone is not equal to itself.
    return [f for f in figures if f and f.value is not None and f.value == f.value]
