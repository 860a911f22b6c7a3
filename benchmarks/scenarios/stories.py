"""Five people's runs, as they would have been recorded. What their stories do not tell is invented,
and marked so."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from scenarios.learning import below, power_law
from scenarios.network_cases import NETWORK_SHARE
from scenarios.scenario import Quantity, Scenario
from scenarios.truth import Truth
from scenarios.world import (
    GBIT_S,
    MBIT_S,
    Learning,
    Life,
    Link,
    Machines,
    Recorded,
    Work,
    World,
    always,
)

_FOUR = ("gpu-1", "gpu-2", "gpu-3", "gpu-4")


def _settings(steps: int, **more: Any) -> Mapping[str, Any]:
    """Transformer-base, Noam with 8,000 steps of warm-up, WMT16: of all five."""
    return {
        "training.steps": steps,
        "schedule.kind": "noam",
        "schedule.scale": 2.0,
        "schedule.warmup_steps": 8000,
        "evaluation.every_steps": 2000,  # invented
        "checkpoints.every_steps": 2000,  # invented
        "telemetry.sensors_every_s": 60.0,
        **more,
    }


# C saw 1.60 at step 40,000 and 1.58 at 50,000. The law through both, with an invented floor of
# 1.45, is at 1.5657 after another 10,000 steps. The others' losses are invented after it.
C_LOSS = power_law(1.45, 1.597, 0.641, warmup=8000)
_LEARNING = Learning(C_LOSS, below(C_LOSS, 0.06), wobble=0.003, floor=1.45, bleu_at_floor=27.5)


def _what_another_quarter_brings(truth: Truth) -> float:
    now, then = C_LOSS(np.array([50_000.0, 62_500.0]))
    return float(now - then)


def _step(seconds: float) -> Quantity:
    return Quantity("step-time", "mean step", lambda truth: seconds, share=0.03)


STORIES = [
    Scenario(
        "story A",
        "taken away after more than 24 h: 1.27 s a step, nothing saved on the way out",
        World(
            _LEARNING,
            # 24 h and more; that the last 1,300 steps were lost is invented.
            [Life(1, 69_300, "")],
            _settings(300_000),
            link=Link(always(6 * GBIT_S), 10_000, overlap=0.8),  # invented
            work=Work(0.385, 0.765),
        ),
        {"trained": "not yet", "overfitting": "no", "learning-rate": "as set"},
        says={"faults": []},
        quantities=[
            _step(1.27),
            Quantity("faults", "lost steps", lambda truth: truth.lost_steps),
            Quantity("duration", "wall time", lambda truth: truth.wall_s, share=0.01),
        ],
    ),
    Scenario(
        "story B",
        "100,000 steps, 48 h, killed by hand; Noam: up to step 8,000, then 1 / sqrt(step)",
        World(
            _LEARNING,
            [Life(1, 100_000, "preempted", "asked to stop (SIGINT)")],
            _settings(300_000),
            # One machine and a figure of 3.5 MB/s at most: hardly anything passed the port.
            machines=Machines(("gpu-1",), ranks_per_host=2),  # invented
            work=Work(0.565, 1.085),  # invented, to make 48 h
        ),
        {"learning-rate": "as set", "network": "compute-bound", "overfitting": "no"},
        says={"learning-rate": ["8,000", "9.88", "scale"]},
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "story C",
        "50,000 steps in 28 h on 2 x 2 GPUs; 1.60 to 1.58 over the last 10,000 steps",
        World(
            _LEARNING,
            [Life(1, 50_000)],
            _settings(50_000),
            machines=Machines(ranks_per_host=2),
            # About 200 MB/s each way: 382 MB on the wire in 2.04 s.
            link=Link(always(2.5 * GBIT_S), 10_000, overlap=0.35),  # rate and overlap invented
            work=Work(0.40, 0.79),
            recorded=Recorded(test_score=25.1),  # invented
        ),
        {
            "trained": "not yet",
            "overfitting": "no",
            "training-set": "1,880 MB, 4,524,868 lines",
            "network": "network-bound",
        },
        quantities=[
            _step(2.04),
            Quantity("trained", "expected gain in loss", _what_another_quarter_brings, share=0.5),
        ],
    ),
    Scenario(
        "story D",
        "50,000 steps of 300,000 planned: the limit of steps is reached, not the end of learning",
        World(
            _LEARNING,
            [Life(1, 50_000)],
            _settings(50_000),
            work=Work(0.512, 1.015),  # invented, to make 1.629 s
            link=Link(always(10 * GBIT_S), 10_000),  # "not the bottleneck"
        ),
        {"trained": "not yet", "network": "compute-bound", "devices": "fully used"},
        quantities=[_step(1.629)],
    ),
    Scenario(
        "story E, 100 Mbit/s",
        "four GPUs at 100 % while 94 % of a step of 30 s is the network: the port is capped",
        World(
            _LEARNING,
            [Life(1, 1700, "preempted", "asked to stop (SIGINT)")],
            _settings(300_000, **{"evaluation.every_steps": 1000}),
            machines=Machines(_FOUR),
            link=Link(always(100 * MBIT_S), nominal_mbit_s=1000, overlap=0.02),
            work=Work(0.55, 1.10),
        ),
        {
            "network": "network-bound",
            "devices": "mostly waiting",
            "trained": "too early to say",
            "overfitting": ("too early to say", "not known"),
            "traffic": "as predicted",
        },
        says={"devices": ["100"]},
        quantities=[
            NETWORK_SHARE,
            Quantity("traffic", "predicted per step", lambda truth: 382e6, share=0.03),
        ],
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "story E, after the cap",
        "the same on ports without a cap: 1.8 s a step",
        World(
            _LEARNING,
            [Life(1, 4000, "preempted", "asked to stop (SIGINT)")],
            _settings(300_000),
            machines=Machines(_FOUR),
            link=Link(always(10 * GBIT_S), 10_000),
            work=Work(0.56, 1.11),
        ),
        {
            "network": "compute-bound",
            "devices": "fully used",
            "trained": "too early to say",
            "overfitting": ("too early to say", "no", "not known"),
        },
        quantities=[_step(1.8)],
        may_say=frozenset({"faults"}),
    ),
]
