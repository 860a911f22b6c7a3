"""Is it trained, and what does the learning rate do?"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from scenarios.learning import below, exploding, levelled, power_law
from scenarios.scenario import Quantity, Scenario
from scenarios.world import Curve, Floats, Learning, Life, Machines, World

STEPS, EVERY = 6000, 200
_SETTINGS: Mapping[str, Any] = {
    "training.steps": STEPS,
    "schedule.warmup_steps": 400,
    "evaluation.every_steps": EVERY,
    "checkpoints.every_steps": EVERY,
    "telemetry.sensors_every_s": 30.0,
}
ALONE = Machines(("node-a",))
GAIN = "expected gain in loss"


def learns(
    learning: Learning, last_step: int = STEPS, settings: Mapping[str, Any] | None = None
) -> World:
    """On one GPU, so that nothing but learning is in question."""
    life = Life(1, last_step)
    return World(learning, [life], {**_SETTINGS, **(settings or {})}, machines=ALONE)


FALLING = power_law(1.0, 1.5, 0.45, warmup=400)
SLOWING = power_law(1.3, 0.6, 0.9, warmup=400)
LEVEL = levelled(power_law(1.3, 0.6, 0.9, warmup=400), 2600)


def _slow_drift(steps: Floats) -> Floats:
    return LEVEL(steps) - 0.001 * steps / 1000


def _logarithm(steps: Floats) -> Floats:
    return 2.2 - 0.1 * np.log2(np.maximum(steps, 400) / 400)


def _after_next_quarter(t: Any) -> float:
    now, then = FALLING(np.array([STEPS, 1.25 * STEPS]))
    return float(now - then)


def _off_at(step: int, lower: float = 0.0) -> Curve:
    return lambda steps: FALLING(steps) - lower + 1.5 * (np.abs(steps - step) < EVERY / 4)


LEARNING_CASES = [
    Scenario(
        "still falling",
        "the loss follows a power law; the next quarter brings 0.07 nats",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0)),
        {"trained": "not yet", "overfitting": "no"},
        quantities=[Quantity("trained", GAIN, _after_next_quarter, share=0.35)],
        seeds=5,
    ),
    Scenario(
        "plateau",
        "flat since step 2,600 of 6,000",
        learns(Learning(LEVEL, below(LEVEL, 0.05))),
        {"trained": "yes", "overfitting": "no"},
        seeds=5,
    ),
    Scenario(
        "falling slowly within noise",
        "0.001 nats in 1,000 steps, under a wobble of 0.012",
        learns(Learning(_slow_drift, below(_slow_drift, 0.05), wobble=0.012)),
        {"trained": ("yes", "too early to say"), "overfitting": "no"},
        seeds=5,
    ),
    Scenario(
        "noise only",
        "flat since step 800, with a wobble of 0.015",
        learns(Learning(levelled(SLOWING, 800), below(levelled(SLOWING, 800), 0.05), wobble=0.015)),
        {"trained": "yes", "overfitting": "no"},
        seeds=5,
    ),
    Scenario(
        "diverged",
        "the loss goes up to 7.5 at step 3,100 and stays there, on training data too",
        learns(Learning(exploding(FALLING, 3100, 7.5), exploding(FALLING, 3100, 7.5))),
        {"trained": "not yet", "overfitting": "no"},
        says={"trained": ["diverge"]},
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "diverged to no number",
        "from step 3,000 on the loss is not a number",
        learns(
            Learning(
                lambda steps: np.where(steps < 3000, FALLING(steps), np.nan),
                lambda steps: np.where(steps < 3000, FALLING(steps) - 0.05, np.nan),
            )
        ),
        {"trained": "not yet", "overfitting": ("no", "not known", "too early to say")},
        says={"trained": ["diverge|not a number|not finite"]},
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "too short",
        "three evaluations, soon after warm-up",
        learns(Learning(FALLING, below(FALLING, 0.05)), 600, {"training.steps": 600}),
        {"trained": "too early to say", "overfitting": ("too early to say", "no")},
    ),
    Scenario(
        "warm-up not over",
        "5,000 steps of a warm-up of 8,000",
        learns(
            Learning(
                power_law(1.0, 1.5, 0.45, warmup=8000),
                below(power_law(1.0, 1.5, 0.45, warmup=8000), 0.05),
            ),
            5000,
            {"schedule.warmup_steps": 8000, "training.steps": 5000},
        ),
        {"trained": "too early to say", "overfitting": ("no", "too early to say")},
    ),
    Scenario(
        "end of a cosine",
        "the rate has come down to nothing, and the loss is flat over the last 900 steps",
        learns(
            Learning(levelled(FALLING, 5100), below(levelled(FALLING, 5100), 0.05), floor=1.0),
            settings={"schedule.kind": "cosine"},
        ),
        {"trained": "yes", "overfitting": "no"},
    ),
    Scenario(
        "middle of a cosine",
        "stopped by hand half-way, the loss still falling",
        replace(
            learns(
                Learning(FALLING, below(FALLING, 0.05), floor=1.0),
                settings={"schedule.kind": "cosine", "training.steps": 12_000},
            ),
            lives=[Life(1, STEPS, "preempted", "asked to stop (SIGTERM)")],
        ),
        {"trained": "not yet", "overfitting": "no"},
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "linear schedule",
        "a straight line down to zero, as set",
        learns(Learning(FALLING, below(FALLING, 0.05)), settings={"schedule.kind": "linear"}),
        {"learning-rate": "as set"},
        says={"learning-rate": ["linear|straight"]},
    ),
    Scenario(
        "constant schedule",
        "one rate after warm-up, as set",
        learns(Learning(FALLING, below(FALLING, 0.05)), settings={"schedule.kind": "constant"}),
        {"learning-rate": "as set"},
        says={"learning-rate": ["constant"]},
    ),
    Scenario(
        "inverse square root",
        "1 / sqrt(step) after warm-up, as set",
        learns(
            Learning(FALLING, below(FALLING, 0.05)),
            settings={"schedule.kind": "inverse-square-root"},
        ),
        {"learning-rate": "as set"},
        says={"learning-rate": ["inverse"]},
    ),
    Scenario(
        "rate not as set",
        "from step 2,000 on the rate is a third of what the schedule says",
        replace(
            learns(Learning(FALLING, below(FALLING, 0.05))),
            rate_factor=lambda steps: np.where(steps < 2000, 1.0, 1 / 3),
        ),
        {"learning-rate": "not as set"},
        says={"learning-rate": ["2,000"]},
    ),
    Scenario(
        "loss spikes",
        "the training loss jumps by 2.5 nats at steps 2,345 and 4,321 and heals",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0, spikes={2345: 2.5, 4321: 2.5})),
        {"trained": "not yet"},
        says={"spikes": ["2", "2,345|4,321"]},
    ),
    Scenario(
        "no BLEU",
        "only losses are evaluated",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0, has_bleu=False)),
        {"trained": "not yet", "overfitting": "no"},
    ),
    Scenario(
        "few evaluations, falling",
        "six evaluations, all after warm-up, each clearly lower than the one before",
        learns(
            Learning(FALLING, below(FALLING, 0.05), floor=1.0),
            settings={"evaluation.every_steps": 1000},
        ),
        {"trained": ("not yet", "too early to say"), "overfitting": ("no", "too early to say")},
    ),
    Scenario(
        "still falling, few sentences",
        "the loss itself is only known to 0.1; its fall is that of the same sentences",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0, loss_error=0.1)),
        {"trained": "not yet"},
    ),
    Scenario(
        "ended by patience",
        "no limit of steps; flat for long, so the run ended itself",
        replace(
            learns(
                Learning(LEVEL, below(LEVEL, 0.05)),
                settings={"training.steps": None, "training.patience": 15},
            ),
            lives=[Life(1, STEPS, "finished", "no better bleu in 15 evaluations", "patience")],
        ),
        {"trained": "yes", "overfitting": "no"},
    ),
    Scenario(
        "learns nothing",
        "the loss stays at 9.4, what guessing gives: flat, and not trained at all",
        learns(
            Learning(
                lambda steps: np.full_like(steps, 9.4),
                lambda steps: np.full_like(steps, 9.4),
                has_bleu=True,
            )
        ),
        {"trained": "not yet", "overfitting": "no"},
    ),
    Scenario(
        "one evaluation off",
        "one of thirty evaluations is 1.5 nats too high, all later ones are on the curve again",
        learns(Learning(_off_at(3000), _off_at(3000, 0.05), floor=1.0)),
        {"trained": "not yet", "overfitting": "no"},
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "last evaluation off",
        "a spike of the loss at the very end: one point, no trend",
        learns(Learning(_off_at(STEPS), _off_at(STEPS, 0.05), floor=1.0)),
        {
            "trained": ("not yet", "too early to say"),
            "overfitting": ("no", "too early to say"),
        },
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "falling with the logarithm",
        "no floor in sight: each doubling of the steps brings 0.1 nats",
        learns(Learning(_logarithm, below(_logarithm, 0.05), floor=1.0)),
        {"trained": "not yet", "overfitting": "no"},
    ),
]
