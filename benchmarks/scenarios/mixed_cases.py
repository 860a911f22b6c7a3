"""Several hindrances at once, and such as are easily taken for each other."""

from dataclasses import replace

import numpy as np

from scenarios.network_cases import (
    FOUR,
    LEARNING,
    NETWORK_SHARE,
    SLOW,
    STRAGGLING,
    TINY,
    TINY_SIZE,
    WHOLE,
)
from scenarios.scenario import Scenario
from scenarios.world import (
    GBIT_S,
    Course,
    Floats,
    Ints,
    Life,
    Link,
    Machines,
    Work,
    World,
    always,
    only,
)

_SIXTEEN = Machines(FOUR, ranks_per_host=4)
_SHORT = [Life(1, 300)]
_SHORT_SETTINGS = {"training.steps": 300}
_TEN_GBIT = Link(always(10 * GBIT_S), 10_000)


def _by_chance(at_most_s: float) -> Course:
    """Of each rank and step another."""

    def course(steps: Ints, rank: int) -> Floats:
        drawn = np.random.default_rng(50 + rank).random(int(steps.max(initial=0)) + 1)
        return at_most_s * drawn[steps]

    return course


MIXED_CASES = [
    Scenario(
        "network 42, straggler 36",
        "of a step 42 % is exposed network and 36 % waiting for node-c",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=Link(always(3.05 * GBIT_S), 10_000, overlap=0.0),
            work=Work(0.17, 0.33, slowed_s=only(2, 0.86)),
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        says={"stragglers": ["node-c"], "network": ["waiting for node-c takes"]},
        quantities=[NETWORK_SHARE, STRAGGLING],
    ),
    Scenario(
        "network 36, straggler 42",
        "of a step 36 % is exposed network and 42 % waiting for node-c",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=Link(always(3.6 * GBIT_S), 10_000, overlap=0.0),
            work=Work(0.17, 0.33, slowed_s=only(2, 1.0)),
        ),
        {"network": "straggler", "devices": "mostly waiting"},
        says={"stragglers": ["node-c"], "network": ["the network takes"]},
        denies={"network": ["is not the bottleneck"]},
        quantities=[NETWORK_SHARE, STRAGGLING],
    ),
    Scenario(
        "one slow GPU of sixteen",
        "rank 9, one of four on node-c, takes 0.4 s longer",
        World(
            LEARNING,
            _SHORT,
            _SHORT_SETTINGS,
            machines=_SIXTEEN,
            link=_TEN_GBIT,
            work=Work(slowed_s=only(9, 0.4)),
        ),
        {"network": "straggler"},
        says={"stragglers": ["rank 9 on node-c"], "network": ["rank 9 on node-c"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "sixteen uneven ranks",
        "the steps of each vary by 15 %: all wait for whoever is last",
        World(
            LEARNING,
            _SHORT,
            _SHORT_SETTINGS,
            machines=_SIXTEEN,
            link=_TEN_GBIT,
            work=Work(jitter=0.15),
        ),
        {"network": "straggler"},
        says={"stragglers": ["in turn"]},
        denies={"stragglers": ["replace"], "network": ["replace"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "one fast host of four",
        "node-a is ready 0.6 s before the others, which are alike",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            work=Work(slowed_s=only(0, 0.0, otherwise=0.6)),
        ),
        {"network": "straggler", "devices": ("fully used", "partly used")},
        says={"stragglers": ["that of node-a"], "network": ["that of node-a"]},
        denies={"stragglers": ["replace"], "network": ["replace"]},
    ),
    Scenario(
        "slow data now here, now there",
        "every rank waits up to 0.8 s for its data, each step anew, and for the others' data",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            work=Work(data_s=_by_chance(0.8)),
        ),
        {"network": "input-bound"},
        says={"stragglers": ["data comes late"]},
        denies={"stragglers": ["else runs"], "network": ["else runs"]},
    ),
    Scenario(
        "slow data on one of two hosts",
        "node-b waits 0.4 s for its data, which node-a waits for",
        World(LEARNING, WHOLE, work=Work(data_s=only(1, 0.4, 0.002))),
        {"network": "straggler"},
        says={"stragglers": ["node-b", "data"], "network": ["node-b", "data"]},
        denies={"stragglers": ["throttled"], "network": ["throttled"]},
    ),
    Scenario(
        "somebody else on a slow link",
        "1 Gbit/s, and 1.6 times the bytes that the gradients need",
        World(LEARNING, WHOLE, link=replace(SLOW, traffic_factor=1.6)),
        {"network": "network-bound", "traffic": "more than predicted"},
        says={
            "traffic": ["something else"],
            "network": ["than the gradients need|than predicted|something else"],
        },
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "few bytes on a slow link",
        "1 Gbit/s, and half of the bytes that fp32 needs: they are halved already",
        World(LEARNING, WHOLE, link=replace(SLOW, traffic_factor=0.5)),
        {"network": "network-bound", "traffic": "less than predicted"},
        denies={"network": ["bf16 on the wire"]},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "packets sent again",
        "2 Gbit/s; 3 % of the packets are lost on the way, 15 % more bytes pass",
        World(
            LEARNING,
            WHOLE,
            link=Link(always(2 * GBIT_S), 10_000, traffic_factor=1.15, retransmitted_share=0.03),
        ),
        {"network": "network-bound", "traffic": "more than predicted"},
        says={"traffic": ["sent again"], "network": ["sent again"]},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "two hosts far apart",
        "a tiny model over 40 ms: four ways take 160 ms, the bytes 6 ms",
        World(
            LEARNING,
            WHOLE,
            TINY,
            link=Link(always(10 * GBIT_S), 10_000, latency_s=0.04, messages=2, overlap=0.1),
            work=Work(0.02, 0.04, 0.004, 0.002, first_step_s=1.0, stall_s=0.01),
        ),
        {"network": "latency-bound", "devices": "mostly waiting", **TINY_SIZE},
        denies={"traffic": ["bytes alone"], "network": ["bf16 on the wire"]},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "copies hold up the steps",
        "each fifth step waits 6 s for a checkpoint's copy: more than half of the time",
        World(LEARNING, WHOLE, {"checkpoints.every_steps": 5}, work=Work(stall_s=6.0)),
        {"devices": "mostly waiting"},
        says={
            "network": ["checkpoint's copy", "checkpoints.every_steps"],
            "devices": ["checkpoint's copy"],
            "step-time": ["checkpoints.every_steps"],
        },
        # Nobody waits in a collective, and computing is less than half of it.
        denies={"devices": ["spins"], "network": ["most of the time computing"]},
    ),
    Scenario(
        "copies hold up the only rank",
        "one GPU; each tenth step waits 5 s for a checkpoint's copy",
        World(
            LEARNING,
            WHOLE,
            {"checkpoints.every_steps": 10},
            machines=Machines(("node-a",)),
            work=Work(stall_s=5.0),
        ),
        {"devices": "partly used", "traffic": "no traffic"},
        says={"network": ["checkpoints.every_steps"], "devices": ["checkpoint's copy"]},
        denies={"devices": ["spins"]},
    ),
    Scenario(
        "evaluating instead of training",
        "a minute of evaluating after each 20 steps of a second",
        World(replace(LEARNING, evaluation_s=60.0), WHOLE, {"evaluation.every_steps": 20}),
        {"network": "compute-bound", "devices": "fully used"},
        says={"duration": ["evaluation.every_steps"]},
    ),
    Scenario(
        "data that stands still",
        "each 250th step waits more than a minute for its data",
        World(
            LEARNING,
            WHOLE,
            work=Work(data_s=lambda steps, rank: np.where(steps % 250 == 100, 110.0, 0.002)),
        ),
        {},
        says={"hangs": ["waiting for data"]},
        may_say=frozenset({"stragglers"}),
    ),
]
