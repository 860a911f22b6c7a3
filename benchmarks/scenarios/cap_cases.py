"""Ports that are capped: on one host or all, in one direction or both, always or now and then.

A ring passes from each host to the next. Peaks are flat at both ends of a capped hop, so a host
that is capped both ways stands out where there are three hosts or more; of one direction only the
hop can be told, and of two hosts nothing.
"""

from dataclasses import replace

import numpy as np

from scenarios.network_cases import FOUR, LEARNING, STEP_TIME, TINY, TINY_SIZE, WHOLE
from scenarios.scenario import Quantity, Scenario
from scenarios.small_cases import LAB, SETTINGS, SIZE
from scenarios.world import (
    GBIT_S,
    MBIT_S,
    Course,
    Life,
    Link,
    Machines,
    Recorded,
    Work,
    World,
    always,
    at,
    only,
    periodic,
    scattered,
    since,
)

THREE = ("node-a", "node-b", "node-c")
LAB_THREE = replace(LAB, hosts=THREE)
LAB_WORK = Work(
    0.07, 0.13, jitter=0.04, first_step_s=0.4, stall_s=0.004, optimizer_s=0.012, rest_s=0.004
)
LAB_LIFE = [Life(1, 300)]
LAB_SETTINGS = SETTINGS | {"training.steps": 300}
NETWORK_5 = Quantity("network", "exposed network share", lambda t: t.network_share, distance=0.05)
STRAGGLING_5 = Quantity(
    "network", "waiting for stragglers share", lambda t: t.straggling_share, distance=0.05
)
MOSTLY_NETWORK = {"network": "network-bound", "devices": "mostly waiting"}


def lab_link(rate: Course, **more: float | int | Course) -> Link:
    """Between nodes of a lab: one bucket, hardly anything beside backward."""
    link = Link(rate, 1000, latency_s=1e-4, messages=1, overlap=0.1)
    return replace(link, **more)  # type: ignore[arg-type]


def lab(link: Link, work: Work = LAB_WORK, machines: Machines = LAB_THREE) -> World:
    return World(LEARNING, LAB_LIFE, LAB_SETTINGS, machines=machines, link=link, work=work)


def capped(host: int, rate: float, otherwise: float = 10 * GBIT_S) -> Link:
    return Link(only(host, rate, otherwise), 10_000)


CAP_CASES = [
    Scenario(
        "three hosts, one capped both ways",
        "node-b sends and receives at 40 Mbit/s, the other two at 1 Gbit/s",
        lab(lab_link(only(1, 40 * MBIT_S, GBIT_S))),
        {**MOSTLY_NETWORK, **SIZE},
        blames={"network": ["node-b"]},
        spares={"network": ["node-a", "node-c"]},
        denies={"network": ["bf16 on the wire"]},
        quantities=[NETWORK_5, STRAGGLING_5],
        seeds=3,
    ),
    Scenario(
        "four hosts, one capped both ways",
        "node-c at 1 Gbit/s, the other three at 10 Gbit/s",
        World(LEARNING, WHOLE, machines=Machines(FOUR), link=capped(2, GBIT_S)),
        MOSTLY_NETWORK,
        blames={"network": ["node-c"]},
        spares={"network": ["node-a", "node-b", "node-d"]},
        denies={"more-machines": ["Yes"]},
        quantities=[NETWORK_5, STRAGGLING_5, STEP_TIME],
        seeds=3,
    ),
    Scenario(
        "four hosts, the first capped both ways",
        "node-a at 500 Mbit/s, where rank 0 is, the other three at 10 Gbit/s",
        World(LEARNING, WHOLE, machines=Machines(FOUR), link=capped(0, 500 * MBIT_S)),
        MOSTLY_NETWORK,
        blames={"network": ["node-a"]},
        spares={"network": ["node-b", "node-c", "node-d"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "eight hosts, one capped both ways",
        "node-f at 2 Gbit/s, the other seven at 10 Gbit/s",
        World(
            LEARNING,
            [Life(1, 400)],
            {"training.steps": 400, "evaluation.every_steps": 100},
            machines=Machines(tuple(f"node-{letter}" for letter in "abcdefgh")),
            link=capped(5, 2 * GBIT_S),
        ),
        {"network": "network-bound"},
        blames={"network": ["node-f"]},
        spares={"network": ["node-a", "node-c", "node-h"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "three hosts, one slow in sending",
        "node-b sends at 40 Mbit/s to node-c; all else passes at 1 Gbit/s",
        lab(lab_link(always(GBIT_S), send_rate=only(1, 40 * MBIT_S, GBIT_S))),
        {**MOSTLY_NETWORK, **SIZE},
        blames={"network": ["node-b|node-c"]},
        spares={"network": ["node-a"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "four hosts, one slow in receiving",
        "node-d receives at 1 Gbit/s from node-c; all else passes at 10 Gbit/s",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=Link(
                always(10 * GBIT_S), 10_000, receive_rate=only(3, GBIT_S, otherwise=10 * GBIT_S)
            ),
        ),
        MOSTLY_NETWORK,
        blames={"network": ["node-c|node-d"]},
        spares={"network": ["node-a", "node-b"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "two hosts, one capped both ways",
        "node-b at 1 Gbit/s, node-a at 10: both hops are slow, and both hosts see the same",
        World(LEARNING, WHOLE, link=capped(1, GBIT_S)),
        MOSTLY_NETWORK,
        alike={"network": ["node-a", "node-b"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "three hosts, all capped alike",
        "40 Mbit/s on each of three lab nodes",
        lab(lab_link(always(40 * MBIT_S))),
        {**MOSTLY_NETWORK, **SIZE},
        alike={"network": list(THREE)},
        quantities=[NETWORK_5, STRAGGLING_5],
    ),
    Scenario(
        "three hosts, one capped, no peaks recorded",
        "node-b at 40 Mbit/s; of the rates only the counters of bytes are known",
        replace(lab(lab_link(only(1, 40 * MBIT_S, GBIT_S))), recorded=Recorded(peaks=False)),
        {**MOSTLY_NETWORK, **SIZE},
        alike={"network": list(THREE)},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "one capped host, small segments",
        "node-b of three at 40 Mbit/s; segments are so small that all see the same even flow",
        lab(lab_link(only(1, 40 * MBIT_S, GBIT_S), segments=256)),
        {**MOSTLY_NETWORK, **SIZE},
        alike={"network": list(THREE)},
        quantities=[NETWORK_5],
        seeds=3,
    ),
    Scenario(
        "one capped host in an older record",
        "node-c of four at 1 Gbit/s; the wait in the small message is part of the rest",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=capped(2, GBIT_S),
            recorded=Recorded(agreement=False, peaks=False),
        ),
        MOSTLY_NETWORK,
        alike={"network": list(FOUR)},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "capped host, straggler elsewhere",
        "node-b at 100 Mbit/s; node-c computes for 0.25 s longer; the link costs more",
        lab(lab_link(only(1, 100 * MBIT_S, GBIT_S)), replace(LAB_WORK, slowed_s=only(2, 0.25))),
        {**MOSTLY_NETWORK, **SIZE},
        blames={"network": ["node-b"], "stragglers": ["node-c"]},
        spares={"network": ["node-a"], "stragglers": ["node-a", "node-b"]},
        quantities=[NETWORK_5, STRAGGLING_5],
        seeds=3,
    ),
    Scenario(
        "capped host, straggler elsewhere, straggler worse",
        "node-a at 200 Mbit/s; node-c computes for 0.8 s longer, which costs more",
        lab(lab_link(only(0, 200 * MBIT_S, GBIT_S)), replace(LAB_WORK, slowed_s=only(2, 0.8))),
        {"network": "straggler", "devices": ("mostly waiting", "partly used"), **SIZE},
        blames={"network": ["node-c"], "stragglers": ["node-c"]},
        spares={"stragglers": ["node-a", "node-b"]},
        quantities=[NETWORK_5, STRAGGLING_5],
    ),
    Scenario(
        "capped host that straggles, too",
        "node-b at 1 Gbit/s of 10, and 0.5 s slower in each step",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=capped(1, GBIT_S),
            work=Work(slowed_s=only(1, 0.5)),
        ),
        MOSTLY_NETWORK,
        blames={"network": ["node-b"], "stragglers": ["node-b"]},
        spares={"network": ["node-a", "node-c", "node-d"]},
        quantities=[NETWORK_5, STRAGGLING_5],
    ),
    Scenario(
        "capped from the middle on",
        "node-c falls from 10 to 1 Gbit/s at step 600 of 1,200",
        World(
            LEARNING,
            [Life(1, 1200)],
            {"training.steps": 1200},
            machines=Machines(FOUR),
            link=Link(
                lambda steps, host: np.where((steps >= 600) & (host == 2), GBIT_S, 10 * GBIT_S),
                10_000,
            ),
        ),
        {"network": "network-bound"},
        says={"network": ["step 59|step 60"]},
        blames={"network": ["node-c"]},
        spares={"network": ["node-a", "node-d"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "cap lifted early",
        "500 Mbit/s between two hosts up to step 400 of 1,200, 25 Gbit/s since",
        World(
            LEARNING,
            [Life(1, 1200)],
            {"training.steps": 1200},
            link=Link(since(401, 500 * MBIT_S, 25 * GBIT_S)),
        ),
        {"network": "network-bound"},
        says={"network": ["step 39|step 40"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "slow link in 31 % of the steps",
        "1 Gbit/s in 31 % of the steps, scattered, and 25 Gbit/s in all others",
        World(
            LEARNING,
            WHOLE,
            link=Link(at(scattered(0.31), always(GBIT_S), always(25 * GBIT_S))),
        ),
        {"network": "network-bound"},
        says={"network": ["29 %|30 %|31 %|32 %|33 %"]},
        quantities=[NETWORK_5],
        seeds=3,
    ),
    Scenario(
        "slow link in three of ten steps",
        "steps 1 to 3 of each ten at 1 Gbit/s, the others at 25",
        World(
            LEARNING,
            WHOLE,
            link=Link(at(periodic(10, 1, 3), always(GBIT_S), always(25 * GBIT_S))),
        ),
        {"network": "network-bound"},
        says={"network": ["29 %|30 %|31 %"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "one host's port bad now and then",
        "node-b of three at 40 Mbit/s in two of five steps, at 1 Gbit/s in the others",
        lab(
            lab_link(at(scattered(0.4), only(1, 40 * MBIT_S, GBIT_S), always(GBIT_S))),
        ),
        {"network": "network-bound", **SIZE},
        says={"network": ["38 %|39 %|40 %|41 %|42 %|43 %|37 %|44 %"]},
        spares={"network": ["node-a"]},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "rates that change in blocks",
        "40, 400 and 100 Mbit/s in turn for 30 steps each, on all of three lab nodes",
        lab(
            lab_link(
                lambda steps, host: np.choose(
                    steps // 30 % 3, [40 * MBIT_S, 400 * MBIT_S, 100 * MBIT_S]
                )
            )
        ),
        {"network": "network-bound", **SIZE},
        alike={"network": list(THREE)},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "half of the bytes beside backward",
        "2 Gbit/s: 60 % of 1.5 s pass beside backward as far as it lasts, the rest does not",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=Link(always(2 * GBIT_S), 10_000, overlap=0.6),
        ),
        {"network": "network-bound"},
        alike={"network": list(FOUR)},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "capped host, all hidden",
        "node-b of four at 6 Gbit/s of 10, where even the slower hop is done before backward",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR),
            link=replace(capped(1, 6.5 * GBIT_S), overlap=1.0),
        ),
        {"network": "compute-bound", "devices": "fully used"},
        spares={"network": list(FOUR)},
    ),
    Scenario(
        "ranks leave the all-reduce far apart",
        "four lab nodes at 100 Mbit/s, even; the first leaves after 40 % of the network's time",
        lab(lab_link(always(100 * MBIT_S), early_return=0.6), machines=replace(LAB, hosts=FOUR)),
        {"network": "network-bound", **SIZE},
        alike={"network": list(FOUR)},
        quantities=[NETWORK_5, STRAGGLING_5],
        seeds=3,
    ),
    Scenario(
        "two hosts of four ranks, leaving far apart",
        "eight GPUs at 5 Gbit/s; nobody is slow",
        World(
            LEARNING,
            [Life(1, 400)],
            {"training.steps": 400, "evaluation.every_steps": 100},
            machines=Machines(ranks_per_host=4),
            link=Link(always(2 * GBIT_S), 10_000, early_return=0.6),
        ),
        {"network": "network-bound"},
        quantities=[NETWORK_5, STRAGGLING_5],
    ),
    Scenario(
        "three hosts far apart",
        "three hosts, 30 ms from one to the next and 10 Gbit/s: the ways take the time",
        World(
            LEARNING,
            WHOLE,
            TINY,
            machines=Machines(THREE),
            link=Link(always(10 * GBIT_S), 10_000, latency_s=0.03, messages=2, overlap=0.1),
            work=Work(0.02, 0.04, 0.004, 0.002, first_step_s=1.0, stall_s=0.01),
        ),
        {"network": "latency-bound", "devices": "mostly waiting", **TINY_SIZE},
        alike={"network": list(THREE)},
    ),
]
