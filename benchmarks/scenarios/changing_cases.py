"""What holds a run back changes while it goes on: links, slow ranks, machines."""

import numpy as np

from scenarios.network_cases import FOUR, LEARNING, NETWORK_SHARE, STRAGGLING, WHOLE
from scenarios.scenario import Quantity, Scenario
from scenarios.world import GBIT_S, Life, Link, Machines, Work, World

_LONG = [Life(1, 2000)]
_LONG_SETTINGS = {"training.steps": 2000}
_WALL = Quantity("duration", "wall time", lambda t: t.wall_s, share=0.01)

CHANGING_CASES = [
    Scenario(
        "link that comes and goes",
        "25 Gbit/s and 1 Gbit/s in turn, 500 steps each",
        World(
            LEARNING,
            _LONG,
            _LONG_SETTINGS,
            link=Link(lambda steps, host: np.where(steps // 500 % 2 == 0, 25 * GBIT_S, GBIT_S)),
        ),
        {"network": "network-bound"},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "link bad in the middle third",
        "1 Gbit/s from step 667 to 1,333 of 2,000, 25 Gbit/s before and after",
        World(
            LEARNING,
            _LONG,
            _LONG_SETTINGS,
            link=Link(lambda steps, host: np.where(abs(steps - 1000) <= 333, GBIT_S, 25 * GBIT_S)),
        ),
        {"network": "network-bound"},
        says={"network": ["from step 66", "to step 1,33", "over since step 1,33"]},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "link slower and slower",
        "from 25 Gbit/s to 1 Gbit/s over 2,000 steps, by the same factor each",
        World(
            LEARNING,
            _LONG,
            _LONG_SETTINGS,
            link=Link(lambda steps, host: 25 * GBIT_S * (1 / 25) ** (steps / 2000)),
        ),
        {"network": "network-bound"},
        says={"network": ["since step 1,"]},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "two stragglers in turn",
        "node-b and node-c take 0.6 s longer, 100 steps this one and 100 the other",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            work=Work(
                slowed_s=lambda steps, rank: np.where(steps // 100 % 2 + 1 == rank, 0.6, 0.0)
            ),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-b", "node-c"]},
        denies={"stragglers": ["node-a", "node-d"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "straggler in the first third",
        "node-c takes 1.5 s longer up to step 333 of 1,000",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            work=Work(slowed_s=lambda steps, rank: np.where(steps <= 333, 1.5 * (rank == 2), 0.0)),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-c"], "network": ["until step 33", "over since step 33"]},
    ),
    Scenario(
        "straggler in one attempt of three",
        "other machines in each attempt; node-x, in the second, takes 0.8 s longer",
        World(
            LEARNING,
            [
                Life(1, 300, "preempted", "node-a: the host is about to be taken away", "notice"),
                Life(
                    301,
                    700,
                    "preempted",
                    "node-x: the host is about to be taken away",
                    "notice",
                    machines=Machines(("node-c", "node-x")),
                ),
                Life(701, 1000, machines=Machines(("node-d", "node-e"))),
            ],
            work=Work(
                slowed_s=lambda steps, rank: np.where(
                    (steps > 300) & (steps <= 700), 0.8 * (rank == 1), 0.0
                )
            ),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-x"], "network": ["node-x is slower"]},
        denies={"network": ["node-b is", "node-e is", "node-e and"]},
    ),
    Scenario(
        "more starting than training",
        "taken away every 30 steps; each of ten starts takes a minute, each pause half of one",
        World(
            LEARNING,
            [
                Life(
                    first,
                    first + 29,
                    "preempted",
                    "taken away",
                    "notice",
                    start_s=60.0,
                    down_s=30.0,
                )
                for first in range(1, 300, 30)
            ],
            {"evaluation.every_steps": 1000},
        ),
        {
            "network": "compute-bound",
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
        },
        says={"duration": ["starting"], "faults": ["No step was lost"]},
        quantities=[_WALL],
    ),
]
