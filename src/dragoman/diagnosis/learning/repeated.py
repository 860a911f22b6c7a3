"""Failures that come again at the same step: their cause is there, and it stays there. Pure."""

import re
from collections import defaultdict
from collections.abc import Sequence

from dragoman.diagnosis.run.faults import Fault

REPEATED = 3
"""As many times the same failure at about the same step are no chance."""
ABOUT = 0.01
"""Of a step: how far apart they may be, and at least ABOUT_STEPS."""
ABOUT_STEPS = 3


def repeated(faults: Sequence[Fault]) -> list[Fault]:
    """Returns the most faults of one kind that say the same and came at about the same step; empty:
    not often enough to mean anything."""
    alike = defaultdict(list)
    for fault in faults:
        if fault.kind in ("failed", "broken off", "rolled back"):
            alike[fault.kind, re.sub(r"\d[\d.,]*", "#", fault.what)].append(fault)
    most: list[Fault] = []
    for group in alike.values():
        for first in group:
            reach = max(ABOUT_STEPS, ABOUT * first.step)
            near = [fault for fault in group if 0 <= fault.step - first.step <= reach]
            most = max(most, near, key=len)
    return most if len(most) >= REPEATED else []
