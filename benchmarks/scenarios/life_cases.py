"""Runs that were interrupted, broken or cut short."""

from dataclasses import replace

import numpy as np

from scenarios.learning import below
from scenarios.learning_cases import FALLING, learns
from scenarios.network_cases import FOUR, LEARNING, STEP_TIME, WHOLE, step_with
from scenarios.scenario import Quantity, Scenario
from scenarios.world import Learning, Life, Machines, Rollback, World

WALL = Quantity("duration", "wall time", lambda t: t.wall_s, share=0.01)
LOST = Quantity("faults", "lost steps", lambda t: t.lost_steps)

_RESUMED = [
    Life(1, 437, ""),
    Life(401, 850, "preempted", "the spot host is about to be taken away", "notice"),
    Life(851, 1123, "failed", "rank 1 on node-b has not been heard from for 8 s: it was in backward"
         " of step 1,124 then, and its process or host is gone", "lost-rank", (1, "node-b")),
    Life(1101, 1399, "", down_s=900.0),
    Life(1301, 1650, ""),
    Life(1601, 2000),
]  # fmt: skip
_RESUMED_SETTINGS = {
    "training.steps": 2000,
    "evaluation.every_steps": 200,
    "checkpoints.every_steps": 100,
}

LIFE_CASES = [
    Scenario(
        "resumed five times",
        "killed, preempted, failed, killed, killed: 209 steps had to be repeated",
        World(LEARNING, _RESUMED, _RESUMED_SETTINGS),
        {"network": "compute-bound"},
        says={"faults": []},
        quantities=[WALL, LOST, STEP_TIME],
    ),
    Scenario(
        "crashed without a word",
        "killed at step 1,234, 34 steps after the last checkpoint; nothing came back",
        World(
            LEARNING,
            [Life(1, 1234, "")],
            {"training.steps": 3000, "checkpoints.every_steps": 200},
        ),
        {"network": "compute-bound"},
        says={"faults": []},
        quantities=[WALL, LOST, STEP_TIME],
    ),
    Scenario(
        "running now",
        "in the middle of its work, the last sign a second ago",
        World(
            LEARNING,
            [Life(1, 1210, "", last_words_s=0.1)],
            {"training.steps": 3000, "checkpoints.every_steps": 200},
        ),
        {"network": "compute-bound", "devices": "fully used"},
        quantities=[WALL, STEP_TIME],
        read_after_s=1.0,
    ),
    Scenario(
        "hanging now",
        "no step for 40 minutes, while sensors are still read",
        World(
            LEARNING,
            [Life(1, 1210, "", silent_s=2400.0)],
            {"training.steps": 3000, "checkpoints.every_steps": 200},
            machines=Machines(FOUR),
        ),
        {},
        says={"hangs": []},
        read_after_s=1.0,
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "hung and ended",
        "rank 2 stood still in backward until the others gave up",
        World(
            LEARNING,
            [
                Life(
                    1,
                    700,
                    "failed",
                    "rank 2 on node-c has been in backward of step 701 for "
                    "61 s, and no rank has gone on since",
                    "lost-rank",
                    (2, "node-c"),
                    silent_s=61.0,
                ),
                Life(601, 1000),
            ],
            {"checkpoints.every_steps": 200},
            machines=Machines(FOUR),
        ),
        {},
        says={"hangs": ["node-c"], "faults": ["node-c"]},
        quantities=[LOST],
    ),
    Scenario(
        "rolled back",
        "the loss explodes at step 3,000; the run goes back to 2,400 with half the rate",
        replace(
            learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0)),
            lives=[
                Life(
                    1,
                    6000,
                    rollbacks=[
                        Rollback(
                            3000,
                            2400,
                            "the loss has exploded from 2.91 to 6.75, median of 100 steps",
                        )
                    ],
                )
            ],
            rate_factor=lambda steps: np.where(np.arange(len(steps)) < 3000, 1.0, 0.5),
        ),
        {"trained": "not yet", "learning-rate": "not as set"},
        says={"faults": []},
        quantities=[LOST],
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "skipped updates",
        "three updates were skipped because gradients were not finite",
        World(replace(LEARNING, skipped=(300, 301, 640)), WHOLE),
        {"network": "compute-bound", "learning-rate": "as set"},
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "only one evaluation",
        "500 steps, looked at once, at the end",
        World(LEARNING, [Life(1, 500)], {"training.steps": 500, "evaluation.every_steps": 500}),
        {
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
        },
    ),
    Scenario(
        "no evaluation",
        "stopped before the first one",
        World(
            LEARNING,
            [Life(1, 500, "preempted", "asked to stop (SIGTERM)")],
            {"training.steps": 3000, "evaluation.every_steps": 1000},
        ),
        {
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
            "network": "compute-bound",
        },
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "no checkpoint",
        "killed before the first save",
        World(
            LEARNING,
            [Life(1, 180, "")],
            {
                "training.steps": 3000,
                "checkpoints.every_steps": 1000,
                "evaluation.every_steps": 1000,
            },
        ),
        {
            # Both follow from the model alone, as long as it is said that none is there.
            "checkpoint-files": ("not known", "5 files"),
            "checkpoint-size": ("not known", "731 MB"),
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
        },
        says={
            "faults": [],
            "checkpoint-files": ["no checkpoint"],
            "checkpoint-size": ["no checkpoint"],
        },
        quantities=[LOST],
    ),
    Scenario(
        "evaluations take long",
        "twenty evaluations of 120 s in a run of about an hour",
        World(replace(LEARNING, evaluation_s=120.0), WHOLE, {"evaluation.every_steps": 50}),
        {"network": "compute-bound"},
        quantities=[
            WALL,
            Quantity("duration", "evaluating", lambda t: t.evaluating_s, share=0.02),
        ],
    ),
    Scenario(
        "priced",
        "two hosts at 3.06 USD an hour",
        World(LEARNING, WHOLE, {"cost.host_per_hour": 3.06}),
        {},
        quantities=[
            WALL,
            Quantity("duration", "cost", lambda t: 2 * 3.06 * t.wall_s / 3600, share=0.02),
        ],
    ),
    Scenario(
        "went on with one host fewer",
        "node-b is lost at step 512; node-a goes on alone, with twice the work a step",
        World(
            LEARNING,
            [
                Life(
                    1,
                    512,
                    "failed",
                    "rank 1 on node-b has not been heard from for 8 s: it was in"
                    " backward of step 513 then, and its process or host is gone",
                    "lost-rank",
                    (1, "node-b"),
                ),
                Life(501, 1000, machines=Machines(("node-a",))),
            ],
            {"checkpoints.every_steps": 100},
        ),
        {"network": "compute-bound", "devices": "fully used"},
        says={"faults": ["node-b"]},
        quantities=[LOST, WALL, step_with(2), step_with(1)],
    ),
    Scenario(
        "dies again and again",
        "six attempts, each killed before its first checkpoint: 6 x 150 steps for nothing",
        World(
            LEARNING,
            [Life(1, 150, "", down_s=60.0) for _ in range(6)],
            {"training.steps": 3000},
        ),
        {
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
            "checkpoint-files": ("not known", "5 files"),
            "checkpoint-size": ("not known", "731 MB"),
        },
        says={"faults": []},
        quantities=[LOST, WALL],
    ),
    Scenario(
        "started again when complete",
        "the second attempt finds nothing left to do",
        World(LEARNING, [Life(1, 1000), Life(1001, 1000, start_s=3.0)]),
        {"network": "compute-bound", "devices": "fully used"},
        quantities=[STEP_TIME],
    ),
    Scenario(
        "other machines after a preemption",
        "node-a and node-b were taken away, node-c and node-d went on",
        World(
            LEARNING,
            [
                Life(1, 520, "preempted", "node-a: the host is about to be taken away", "notice"),
                Life(521, 1000, machines=Machines(("node-c", "node-d"))),
            ],
        ),
        {"network": "compute-bound", "devices": "fully used", "traffic": "as predicted"},
        quantities=[LOST, WALL, STEP_TIME],
    ),
]
