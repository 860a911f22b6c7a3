"""Is it overfitting?"""

import numpy as np

from scenarios.learning import below, power_law, turning
from scenarios.learning_cases import EVERY, FALLING, LEVEL, SLOWING, learns
from scenarios.scenario import Quantity, Scenario
from scenarios.world import Floats, Learning

ONSET = "began after step"
STEEP = power_law(0.65, 5.9, 1.09, warmup=900)


def _with_a_bump(steps: Floats) -> Floats:
    return FALLING(steps) + 0.15 * np.exp(-(((steps - 2500) / 350) ** 2))


def _wavering(steps: Floats) -> Floats:
    """Level, but for noise of 0.02 of which four fifths are kept from an evaluation to the next."""
    fresh = np.random.default_rng(11).normal(0, 0.02, 40)
    kept = [fresh[0]]
    for each in fresh[1:]:
        kept.append(0.8 * kept[-1] + 0.6 * each)
    return LEVEL(steps) + np.interp(steps, EVERY * np.arange(40), kept)


OVERFITTING_CASES = [
    Scenario(
        "overfitting",
        "from step 3,000 on validation rises while the training sample falls on",
        learns(Learning(turning(SLOWING, 3000, 0.06), below(SLOWING, 0.1, 0.05, 1500))),
        {"overfitting": "yes"},
        quantities=[Quantity("overfitting", ONSET, lambda t: 3000.0, distance=EVERY)],
        seeds=5,
    ),
    Scenario(
        "overfitting early",
        "a small corpus learned by heart: from step 1,000 on, steeply",
        learns(Learning(turning(SLOWING, 1000, 0.25), below(SLOWING, 0.2, 0.1, 500))),
        {"overfitting": "yes"},
        quantities=[Quantity("overfitting", ONSET, lambda t: 1000.0, distance=EVERY)],
    ),
    Scenario(
        "gap but not overfitting",
        "the training sample is 0.35 nats lower, and both are still falling",
        learns(Learning(FALLING, below(FALLING, 0.35), floor=1.0)),
        {"overfitting": "no", "trained": "not yet"},
        seeds=5,
    ),
    Scenario(
        "gap that widens while both fall",
        "the training sample falls faster; validation has never risen",
        learns(Learning(FALLING, below(FALLING, 0.1, 0.03), floor=1.0)),
        {"overfitting": "no", "trained": "not yet"},
    ),
    Scenario(
        "rise within noise",
        "validation rises by 0.002 nats in 1,000 steps under a wobble of 0.012",
        learns(Learning(turning(LEVEL, 2600, 0.002), below(LEVEL, 0.05), wobble=0.012)),
        {"overfitting": ("no", "too early to say")},
        seeds=5,
    ),
    Scenario(
        "no training sample",
        "validation rises, and the loss on training data was never measured in evaluation mode",
        learns(Learning(turning(SLOWING, 3000, 0.06), None)),
        {"overfitting": ("not known", "too early to say")},
    ),
    Scenario(
        "overfitting under noise",
        "the same rise as of `overfitting`, under a wobble of 0.015",
        learns(
            Learning(turning(SLOWING, 3000, 0.06), below(SLOWING, 0.1, 0.05, 1500), wobble=0.015)
        ),
        {"overfitting": "yes"},
        quantities=[Quantity("overfitting", ONSET, lambda t: 3000.0, distance=4 * EVERY)],
        seeds=5,
    ),
    Scenario(
        "overfitting, few sentences",
        "validation has few sentences: its loss is only known to 0.06, but they stay the same",
        learns(
            Learning(turning(SLOWING, 3000, 0.06), below(SLOWING, 0.1, 0.05, 1500), loss_error=0.06)
        ),
        {"overfitting": "yes"},
    ),
    Scenario(
        "rise that passed",
        "validation rises for 1,000 steps in the middle, then falls below what it was",
        learns(Learning(_with_a_bump, below(FALLING, 0.05), floor=1.0)),
        {"overfitting": "no", "trained": "not yet"},
    ),
    Scenario(
        "validation easier than training data",
        "the training sample has the higher loss, both are falling",
        learns(Learning(FALLING, below(FALLING, -0.2), floor=1.0)),
        {"overfitting": "no", "trained": "not yet"},
    ),
    Scenario(
        "learning by heart without harm",
        "the training sample falls on, validation is flat: no gain, and no loss",
        learns(Learning(LEVEL, below(LEVEL, 0.1, 0.06, 2600))),
        {"overfitting": "no", "trained": "yes"},
        seeds=3,
    ),
    Scenario(
        "overfitting a little",
        "validation rises by 0.036 nats in 3,000 steps, twelve times its wobble",
        learns(
            Learning(turning(SLOWING, 3000, 0.012), below(SLOWING, 0.1, 0.04, 1500), wobble=0.003)
        ),
        {"overfitting": "yes"},
        seeds=3,
    ),
    Scenario(
        "overfitting out of a steep fall",
        "the loss falls fast up to step 3,600 and rises steadily since, by 0.03 nats in 1,000",
        learns(Learning(turning(STEEP, 3600, 0.03), below(STEEP, 0.05, 0.05, 1800), wobble=0.002)),
        {"overfitting": "yes"},
        quantities=[Quantity("overfitting", ONSET, lambda t: 3600.0, distance=2 * EVERY)],
        seeds=3,
    ),
    Scenario(
        "plateau that wavers slowly",
        "validation is level but for noise that lasts for several evaluations",
        learns(Learning(_wavering, below(LEVEL, 0.1, 0.06, 2600))),
        {"overfitting": ("no", "too early to say")},
        seeds=3,
    ),
    Scenario(
        "overfitting after a long rest",
        "level from step 2,600 on, and rising from step 4,200 on while the training sample falls",
        learns(Learning(turning(LEVEL, 4200, 0.06), below(LEVEL, 0.1, 0.05, 2600))),
        {"overfitting": "yes"},
        quantities=[Quantity("overfitting", ONSET, lambda t: 4200.0, distance=4 * EVERY)],
        seeds=3,
    ),
]
