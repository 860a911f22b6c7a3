"""How a verdict is to be taken at a glance: what colors a card, and what a word beside it says.

The verdicts themselves are made in `diagnosis`; here is only which of their words are good news.
"""

from typing import Literal

from dragoman.diagnosis.findings import UNKNOWN, Finding

Health = Literal["good", "watch", "poor", "open", "fact"]
"""open: nothing can be said yet. fact: a figure that is neither good nor bad."""

# Never by color alone: each has a sign and a word too.
SIGNS: dict[Health, str] = {"good": "✓", "watch": "▲", "poor": "✕", "open": "?", "fact": "•"}
WORDS: dict[Health, str] = {
    "good": "good",
    "watch": "worth a look",
    "poor": "needs action",
    "open": "open",
    "fact": "a figure",
}

_OF_VERDICTS: dict[str, dict[str, Health]] = {
    "trained": {"yes": "good", "not yet": "watch"},
    "overfitting": {"no": "good", "yes": "poor"},
    "devices": {"fully used": "good", "partly used": "watch", "mostly waiting": "poor"},
    "network": {
        "compute-bound": "good",
        "network-bound": "poor",
        "latency-bound": "poor",
        "straggler": "poor",
        "input-bound": "poor",
    },
    "learning-rate": {"as set": "good", "not as set": "watch"},
    "traffic": {
        "as predicted": "good",
        "more than predicted": "watch",
        "less than predicted": "watch",
    },
}
_OPEN = (UNKNOWN, "too early to say")


def health_of(finding: Finding) -> Health:
    if finding.confidence == "none" or finding.verdict in _OPEN:
        return "open"
    known = _OF_VERDICTS.get(finding.key, {}).get(finding.verdict)
    if known:
        return known
    # Something to do about it is what makes of a figure a matter.
    return "watch" if finding.advice else "fact"
