"""What `sync.accumulate` changes of the other keys: updates that are several times as large.

A run sees the same tokens as without. What counts updates is divided. Rates are raised by the
square root, which keeps the noise of Adam's steps over the same tokens what it was (Malladi et al.
2022). Noam's formula does that by itself: at a step that is divided, with a warm-up that is
divided, it is higher by the root.
"""

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conversion:
    """From a value and how many updates become one: the value of larger updates, and back."""

    larger: Callable[[Any, int], Any]
    plain: Callable[[Any, int], Any]


def _multiplied(count: int, times: int) -> int:
    return count * times


def _divided(count: int, times: int) -> int:
    return -(-count // times)  # rounded up


def _raised(rate: float, times: int) -> float:
    return rate * math.sqrt(times)


def _lowered(rate: float, times: int) -> float:
    return rate / math.sqrt(times)


_STEPS = Conversion(_divided, _multiplied)
_RATE = Conversion(_raised, _lowered)
CONVERSIONS: Mapping[str, Conversion] = {
    "training.steps": _STEPS,
    "training.compare_every_steps": _STEPS,
    "schedule.warmup_steps": _STEPS,
    "evaluation.every_steps": _STEPS,
    "checkpoints.every_steps": _STEPS,
    "checkpoints.memory_every_steps": _STEPS,
    "training.tokens_per_update": Conversion(_multiplied, _divided),
    "schedule.peak": _RATE,
    "schedule.final": _RATE,
    "schedule.tails": Conversion(
        lambda tails, times: tuple((_divided(s, times), _raised(r, times)) for s, r in tails),
        lambda tails, times: tuple((_multiplied(s, times), _lowered(r, times)) for s, r in tails),
    ),
    "optimizer.average_decay": Conversion(
        lambda decay, times: decay**times, lambda decay, times: decay ** (1 / times)
    ),
}


def with_larger_updates(tree: dict[str, Any], times: int) -> dict[str, Any]:
    """Returns the settings of a run whose updates are `times` as large, over the same tokens."""
    tree = deepcopy(tree)
    for dotted, conversion in CONVERSIONS.items():
        section, _, key = dotted.partition(".")
        if tree[section][key] is not None:
            tree[section][key] = conversion.larger(tree[section][key], times)
    tree["sync"]["accumulate_applied"] = True
    return tree
