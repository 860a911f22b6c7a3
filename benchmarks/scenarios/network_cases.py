"""Links: fast, slow, far, changing, capped."""

from dataclasses import replace

import numpy as np

from scenarios.learning import below, power_law
from scenarios.pace import pace_of
from scenarios.recipe import config_of
from scenarios.scenario import Quantity, Scenario
from scenarios.truth import Truth
from scenarios.world import (
    GBIT_S,
    MBIT_S,
    Course,
    Floats,
    Ints,
    Learning,
    Life,
    Link,
    Machines,
    Work,
    World,
    always,
    only,
    since,
)

_LOSS = power_law(1.2, 0.9, 0.4)
LEARNING = Learning(_LOSS, below(_LOSS, 0.1))
WHOLE = [Life(1, 1000)]
SLOW = Link(always(1 * GBIT_S), nominal_mbit_s=1000)
SOMEWHAT_SLOW = Link(always(3 * GBIT_S), 10_000, overlap=0.3)
FOUR = ("node-a", "node-b", "node-c", "node-d")
TINY = {
    "model.preset": "transformer-tiny",
    "tokenizer.vocabulary": 4000,
    "training.tokens_per_update": 4000,
}
TINY_SIZE = {"checkpoint-size": ("23 MB", "22.8 MB")}

NETWORK_SHARE = Quantity("network", "exposed network share", lambda t: t.network_share, 0.1)
STRAGGLING = Quantity("network", "waiting for stragglers", lambda t: t.straggling_s, 0.1)


def otherwise(name: str, world: World, updates: int = 1) -> Quantity:
    """What a step would take in another world; for the same tokens, where it is a larger one."""

    def step_s(truth: Truth) -> float:
        config = config_of(world)
        pace = pace_of(world, config, Life(1, 200), np.random.default_rng(1))
        return float(pace.step_s[1:].mean()) / updates

    return Quantity("network", f"step with {name}", step_s, share=0.15)


def larger(work: Work, times: int) -> Work:
    return replace(
        work,
        forward_s=times * work.forward_s,
        backward_s=times * work.backward_s,
        passes=times * work.passes,
    )


STEP_TIME = Quantity("step-time", "mean step", lambda t: t.mean_step_s, 0.01)
SENT = Quantity("traffic", "sent per step", lambda t: t.sent_bytes_per_step, 0.02)


def step_with(hosts: int) -> Quantity:
    """Of a run that had other numbers of hosts as well."""
    name = f"mean step with {hosts} host{'s' if hosts > 1 else ''}"
    return Quantity("step-time", name, lambda t: t.mean_step_by_hosts[hosts], 0.01)


def _between(low: float, high: float) -> Course:
    def course(steps: Ints, host: int) -> Floats:
        share = np.random.default_rng(11).random(int(steps.max(initial=0)) + 1)[steps]
        return low + (high - low) * share

    return course


def _what_ifs(link: Link) -> list[Quantity]:
    """Of a world that differs from the others in its link alone."""
    world = World(LEARNING, WHOLE, link=link)
    twice = replace(world, work=larger(world.work, 2))
    faster = replace(link, rate=lambda steps, host: 10 * np.asarray(link.rate(steps, host)))
    return [
        otherwise("a link ten times faster", replace(world, link=faster)),
        otherwise("updates twice as large", twice, updates=2),
    ]


NETWORK_CASES = [
    Scenario(
        "nothing wrong",
        "25 Gbit/s, even ranks, data in time: the devices set the pace",
        World(LEARNING, WHOLE),
        {"network": "compute-bound", "devices": "fully used", "traffic": "as predicted"},
        quantities=[STEP_TIME, SENT],
    ),
    Scenario(
        "slow link",
        "1 Gbit/s between two hosts: most of a step is exposed communication",
        World(LEARNING, WHOLE, link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, STEP_TIME, SENT, *_what_ifs(SLOW)],
    ),
    Scenario(
        "slow link on one node",
        "four hosts, one of them at 1 Gbit/s: a ring is as fast as its slowest link",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=Link(only(2, GBIT_S, otherwise=10 * GBIT_S), nominal_mbit_s=10_000),
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "link somewhat slow",
        "3 Gbit/s: about a third of a step is exposed communication",
        World(LEARNING, WHOLE, link=SOMEWHAT_SLOW),
        {"network": "network-bound", "devices": "partly used"},
        quantities=[NETWORK_SHARE, *_what_ifs(SOMEWHAT_SLOW)],
    ),
    Scenario(
        "link changed mid-run",
        "25 Gbit/s up to step 999, 1 Gbit/s from step 1,000 on",
        World(
            LEARNING,
            [Life(1, 2000)],
            {"training.steps": 2000},
            link=Link(since(1000, 25 * GBIT_S, GBIT_S)),
        ),
        {"network": "network-bound"},
        says={"network": ["step 1,0|step 9"]},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "link loaded and hidden",
        "the network works half of each step, all of it beside backward",
        World(LEARNING, WHOLE, link=Link(always(5 * GBIT_S), 10_000, overlap=1.0)),
        {"network": "compute-bound", "devices": "fully used", "traffic": "as predicted"},
    ),
    Scenario(
        "capped port",
        "the port says 10 Gbit/s and gives 100 Mbit/s; GPUs show 100 % while they wait",
        World(LEARNING, [Life(1, 300)], {"training.steps": 300}, link=Link(always(100 * MBIT_S))),
        {"network": "network-bound", "devices": "mostly waiting"},
        says={"devices": ["100"]},
        quantities=[NETWORK_SHARE, STEP_TIME],
    ),
    Scenario(
        "straggler and slow link, link worse",
        "1 Gbit/s costs 1.5 s a step, a slow rank 0.25 s",
        World(LEARNING, WHOLE, link=SLOW, work=Work(slowed_s=only(1, 0.25))),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[NETWORK_SHARE],
        may_say=frozenset({"stragglers"}),
    ),
    Scenario(
        "latency-bound",
        "a tiny model over links of 20 ms: messages wait, the port of 10 Gbit/s is idle",
        World(
            LEARNING,
            WHOLE,
            TINY,
            machines=Machines(FOUR),
            link=Link(always(10 * GBIT_S), 10_000, latency_s=0.02, messages=2, overlap=0.2),
            work=Work(0.02, 0.04, 0.004, 0.002, first_step_s=1.0, stall_s=0.01),
        ),
        {"network": "latency-bound", "devices": "mostly waiting", **TINY_SIZE},
    ),
    Scenario(
        "two hosts with two ranks",
        "four GPUs in two machines at 1 Gbit/s",
        World(LEARNING, WHOLE, machines=Machines(ranks_per_host=2), link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, SENT],
    ),
    Scenario(
        "link mended early",
        "1 Gbit/s for the first 60 of 2,000 steps, 25 Gbit/s since",
        World(
            LEARNING,
            [Life(1, 2000)],
            {"training.steps": 2000},
            link=Link(since(61, GBIT_S, 25 * GBIT_S)),
        ),
        {"network": "compute-bound"},
    ),
    Scenario(
        "many ranks",
        "two hosts with four GPUs each, 10 Gbit/s, nothing wrong",
        World(
            LEARNING,
            [Life(1, 500)],
            {"training.steps": 500},
            machines=Machines(ranks_per_host=4),
            link=Link(always(10 * GBIT_S), 10_000),
        ),
        {"network": "compute-bound", "traffic": "as predicted"},
    ),
    Scenario(
        "link that fluctuates",
        "between 0.5 and 2 Gbit/s, from step to step",
        World(LEARNING, WHOLE, link=Link(_between(0.5 * GBIT_S, 2 * GBIT_S), 10_000)),
        {"network": "network-bound", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, STEP_TIME],
    ),
    Scenario(
        "link that fails now and then",
        "in 1 of 25 steps it falls to 50 Mbit/s, segments are sent again",
        World(
            LEARNING,
            WHOLE,
            link=Link(
                lambda steps, host: np.where(steps % 25 == 7, 50 * MBIT_S, 25 * GBIT_S),
                retransmitted_share=0.01,
            ),
        ),
        {"network": "network-bound"},
        quantities=[NETWORK_SHARE],
        may_say=frozenset({"hangs"}),
    ),
    Scenario(
        "latency of another continent",
        "100 ms between hosts and 10 all-reduces a step; the rate would be no problem",
        World(
            LEARNING,
            [Life(1, 300)],
            {"training.steps": 300},
            machines=Machines(FOUR),
            link=Link(always(10 * GBIT_S), 10_000, latency_s=0.1, overlap=0.05),
        ),
        {"network": "latency-bound", "devices": "mostly waiting"},
    ),
    Scenario(
        "slow and far",
        "100 Mbit/s and 20 ms: the bytes take 20 s, the way less than one",
        World(
            LEARNING,
            [Life(1, 300)],
            {"training.steps": 300},
            link=Link(always(100 * MBIT_S), 1000, latency_s=0.02, overlap=0.02),
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "a dozen steps",
        "killed after 12 steps of 21 s each, on 100 Mbit/s",
        World(LEARNING, [Life(1, 12, "")], link=Link(always(100 * MBIT_S), 1000)),
        {
            "network": ("network-bound", "not known"),
            "devices": ("mostly waiting", "not known"),
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
            "checkpoint-files": ("not known", "5 files"),
            "checkpoint-size": ("not known", "731 MB"),
        },
        says={"faults": []},
    ),
]
