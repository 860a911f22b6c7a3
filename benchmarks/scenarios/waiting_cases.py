"""Waiting for something else than the network: slower ranks, and data; and for several at once."""

import numpy as np

from scenarios.changing_cases import CHANGING_CASES
from scenarios.mixed_cases import MIXED_CASES
from scenarios.network_cases import FOUR, LEARNING, NETWORK_SHARE, STRAGGLING, WHOLE
from scenarios.scenario import Scenario
from scenarios.world import (
    GBIT_S,
    Course,
    Floats,
    Ints,
    Link,
    Machines,
    Work,
    World,
    always,
    only,
)


def _some(share: float, seconds: float, rank: int, seed: int = 5) -> Course:
    """In a share of the steps, at random, one rank takes longer."""

    def course(steps: Ints, asked: int) -> Floats | float:
        chosen = np.random.default_rng(seed).random(int(steps.max(initial=0)) + 1) < share
        return np.where(chosen[steps], seconds, 0.0) if asked == rank else 0.0

    return course


def _in_turn(every: int, seconds: float, ranks: int) -> Course:
    return lambda steps, asked: np.where(steps // every % ranks == asked, seconds, 0.0)


def _each(every: int, seconds: float, otherwise: float) -> Course:
    return lambda steps, asked: np.where(steps % every == 0, seconds, otherwise)


WAITING_CASES = [
    Scenario(
        "constant straggler",
        "rank 2 of 4 takes 0.6 s longer in every step, on a fast link",
        World(LEARNING, WHOLE, machines=Machines(FOUR), work=Work(slowed_s=only(2, 0.6))),
        {"network": "straggler"},
        says={"stragglers": ["node-c"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "intermittent straggler",
        "rank 1 of 4 takes 1.6 s longer in 3 of 10 steps",
        World(LEARNING, WHOLE, machines=Machines(FOUR), work=Work(slowed_s=_some(0.3, 1.6, 1))),
        {"network": "straggler"},
        says={"stragglers": ["node-b"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "straggler that moves",
        "every 50 steps another of four hosts takes 0.7 s longer",
        World(LEARNING, WHOLE, machines=Machines(FOUR), work=Work(slowed_s=_in_turn(50, 0.7, 4))),
        {"network": "straggler"},
        says={"stragglers": ["node-a", "node-b", "node-c", "node-d"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "slow data",
        "every rank waits 0.45 s a step for its data",
        World(LEARNING, WHOLE, work=Work(data_s=always(0.45))),
        {"network": "input-bound", "devices": "partly used"},
        may_say=frozenset({"stragglers"}),
    ),
    Scenario(
        "data in bursts",
        "every 40th step waits 25 s for data, all others nothing",
        World(LEARNING, WHOLE, work=Work(data_s=_each(40, 25.0, 0.002))),
        {"network": "input-bound"},
        may_say=frozenset({"stragglers", "hangs"}),
    ),
    Scenario(
        "slow data on one rank",
        "rank 1 of 4 waits 0.9 s for its data, the others wait for it",
        World(LEARNING, WHOLE, machines=Machines(FOUR), work=Work(data_s=only(1, 0.9, 0.002))),
        # What to see to is the data, and where: on that one host.
        {"network": "straggler"},
        says={"stragglers": ["node-b", "data"], "network": ["node-b", "data"]},
        denies={"stragglers": ["throttled"], "network": ["throttled"]},
    ),
    Scenario(
        "busy CPU on one host",
        "CPU workers; another program takes half of node-b, whose ranks are slower by 0.5 s",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(
                device="cpu",
                name="AMD EPYC",
                precision="fp32",
                memory_bytes=128e9,
                foreign_cpu_percent=only(1, 50.0),
            ),
            work=Work(slowed_s=only(1, 0.5)),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-b"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "straggler host of two ranks",
        "both ranks of node-b take 0.5 s longer",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(ranks_per_host=2),
            work=Work(slowed_s=lambda steps, rank: 0.5 if rank >= 2 else 0.0),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-b"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "straggler in the second half",
        "node-d takes 0.9 s longer from step 500 of 1,000 on",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            work=Work(slowed_s=lambda steps, rank: np.where(steps < 500, 0.0, 0.9 * (rank == 3))),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-d"]},
    ),
    Scenario(
        "uneven by chance alone",
        "each rank's steps vary by 6 %: now this one is last, now that one, never by much",
        World(LEARNING, WHOLE, machines=Machines(FOUR), work=Work(jitter=0.06)),
        {"network": "compute-bound"},
    ),
    Scenario(
        "slow data and slow link, data worse",
        "1.6 s of waiting for data, 0.5 s of exposed network",
        World(
            LEARNING,
            WHOLE,
            link=Link(always(3 * GBIT_S), 10_000, overlap=0.3),
            work=Work(data_s=always(1.6)),
        ),
        {"network": "input-bound", "devices": "mostly waiting"},
        quantities=[NETWORK_SHARE],
        may_say=frozenset({"stragglers"}),
    ),
    Scenario(
        "the first rank straggles",
        "rank 0 takes 0.6 s longer; by its own clock it hardly waits for anybody",
        World(LEARNING, WHOLE, machines=Machines(FOUR), work=Work(slowed_s=only(0, 0.6))),
        {"network": "straggler"},
        says={"stragglers": ["node-a"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "two hosts of four straggle",
        "node-b and node-d take 0.7 s longer, always",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            work=Work(slowed_s=lambda steps, rank: 0.7 if rank in (1, 3) else 0.0),
        ),
        {"network": "straggler"},
        says={"stragglers": ["node-b", "node-d"]},
        quantities=[STRAGGLING],
    ),
    *CHANGING_CASES,
    *MIXED_CASES,
]
