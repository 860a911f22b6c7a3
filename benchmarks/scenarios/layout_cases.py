"""Numbers of hosts that change from attempt to attempt, and one machine alone."""

from dataclasses import replace

import numpy as np

from scenarios.cap_cases import LAB_SETTINGS, LAB_WORK, NETWORK_5, STRAGGLING_5, lab_link
from scenarios.network_cases import FOUR, LEARNING, STEP_TIME, WHOLE, step_with
from scenarios.scenario import Scenario
from scenarios.small_cases import LAB, SIZE
from scenarios.world import (
    GBIT_S,
    MBIT_S,
    Life,
    Link,
    Machines,
    Work,
    World,
    always,
    only,
)

ONE, TWO, THREE = FOUR[:1], FOUR[:2], FOUR[:3]
_TEN = Link(always(10 * GBIT_S), 10_000)
_NOTICE = "the host is about to be taken away"
_SETTINGS = {"evaluation.every_steps": 100, "checkpoints.every_steps": 100}


def lives(*layouts: tuple[str, ...], steps: int = 300, down_s: float = 30.0) -> list[Life]:
    """An attempt on each of these, one after the other; all but the last are preempted."""
    last = len(layouts) - 1
    return [
        Life(
            place * steps + 1,
            (place + 1) * steps,
            "finished" if place == last else "preempted",
            "" if place == last else f"{hosts[0]}: {_NOTICE}",
            "" if place == last else "notice",
            down_s=down_s,
            machines=Machines(hosts),
        )
        for place, hosts in enumerate(layouts)
    ]


def _settings(steps: int) -> dict[str, object]:
    return _SETTINGS | {"training.steps": steps}


def hosts_word(count: int) -> str:
    words = ("one", "two", "three", "four")
    return "|".join(
        f"{number} {unit}"
        for number in (str(count), words[count - 1], words[count - 1].capitalize())
        for unit in (("host", "machine", "rank") if count == 1 else ("hosts", "machines", "ranks"))
    )


DEARER = "dearer|more expensive|cost more|costs more|higher cost|more money"

LAYOUT_CASES = [
    Scenario(
        "two, four, three, one",
        "taken away three times: 2, then 4, then 3 hosts, then one alone, 300 steps each",
        World(LEARNING, lives(TWO, FOUR, THREE, ONE), _settings(1200), link=_TEN),
        {"network": "compute-bound", "devices": "fully used"},
        says={"step-time": [hosts_word(2), hosts_word(4), hosts_word(3)]},
        denies={"traffic": ["ring of 1 "], "step-time": ["ring of 1 ", "most of them were done"]},
        quantities=[step_with(2), step_with(4), step_with(3), step_with(1)],
    ),
    Scenario(
        "four hosts slower and dearer than two",
        "300 steps on two hosts, then 300 on four, at 500 Mbit/s and 2 USD an hour each",
        World(
            LEARNING,
            lives(TWO, FOUR),
            _settings(600) | {"cost.host_per_hour": 2.0},
            link=Link(always(500 * MBIT_S), 1000),
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        says={"step-time": ["slower", DEARER, hosts_word(4), hosts_word(2)]},
        denies={"more-machines": ["Yes"]},
        quantities=[NETWORK_5, step_with(2), step_with(4)],
        seeds=3,
    ),
    Scenario(
        "two hosts slower than one",
        "400 steps on one host, then 400 on two over 100 Mbit/s: 1.8 s a step, then 21 s",
        World(
            LEARNING,
            lives(ONE, TWO, steps=400),
            _settings(800) | {"cost.host_per_hour": 3.0},
            link=Link(always(100 * MBIT_S), 1000),
        ),
        {"network": "network-bound"},
        says={"step-time": ["slower", DEARER]},
        denies={"more-machines": ["Yes"], "traffic": ["ring of 1 "]},
        quantities=[step_with(1), step_with(2)],
    ),
    Scenario(
        "four hosts faster than two",
        "300 steps on two hosts, then 300 on four, with links that nobody notices",
        World(LEARNING, lives(TWO, FOUR), _settings(600) | {"cost.host_per_hour": 2.0}),
        {"network": "compute-bound", "devices": "fully used"},
        says={"step-time": [hosts_word(4), hosts_word(2)]},
        denies={"step-time": ["slower and", "are slower", "were slower"]},
        quantities=[step_with(2), step_with(4)],
    ),
    Scenario(
        "four hosts faster and dearer than two",
        "at 4 Gbit/s the steps are a quarter shorter with four hosts, for twice the price an hour",
        World(
            LEARNING,
            lives(TWO, FOUR),
            _settings(600) | {"cost.host_per_hour": 2.0},
            link=Link(always(4 * GBIT_S), 10_000, overlap=0.5),
        ),
        {},
        says={"step-time": [hosts_word(4), hosts_word(2)]},
        denies={"step-time": ["slower and", "are slower", "were slower"]},
        quantities=[step_with(2), step_with(4)],
    ),
    Scenario(
        "one, two, four",
        "each attempt has twice the hosts and takes half the time a step",
        World(LEARNING, lives(ONE, TWO, FOUR), _settings(900), machines=Machines(TWO), link=_TEN),
        {"network": "compute-bound", "devices": "fully used"},
        denies={"traffic": ["ring of 1 "], "step-time": ["are slower", "were slower"]},
        quantities=[step_with(1), step_with(2), step_with(4)],
    ),
    Scenario(
        "two GPUs in one machine",
        "NCCL passes the gradients from one to the other; no interface sees a byte of them",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(ONE, ranks_per_host=2),
            link=Link(shows_on_interfaces=False),
        ),
        {
            "network": "compute-bound",
            "devices": "fully used",
            "traffic": ("no traffic", "not known"),
        },
        denies={
            "traffic": ["% less", "ach node", "orrelation of -"],
            "network": ["ach node", "of the 25 Gbit/s"],
        },
        quantities=[STEP_TIME],
        seeds=3,
    ),
    Scenario(
        "eight GPUs in one machine, one slow",
        "rank 5 takes 0.4 s longer; NCCL's bytes pass no interface",
        World(
            LEARNING,
            [Life(1, 400)],
            _settings(400),
            machines=Machines(ONE, ranks_per_host=8),
            link=Link(shows_on_interfaces=False),
            work=Work(slowed_s=only(5, 0.4)),
        ),
        {"network": "straggler", "traffic": ("no traffic", "not known")},
        blames={"stragglers": ["rank 5"], "network": ["rank 5"]},
        denies={"traffic": ["% less", "ach node"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "four workers on one machine",
        "CPU workers, whose gradients pass the loopback interface",
        World(
            LEARNING,
            [Life(1, 300)],
            LAB_SETTINGS,
            machines=replace(LAB, hosts=ONE, ranks_per_host=4, cores=8),
            work=LAB_WORK,
        ),
        {"network": "compute-bound", "traffic": "as predicted", **SIZE},
        denies={"traffic": ["ach node", "orrelation of -"], "network": ["ach node"]},
        quantities=[STEP_TIME],
    ),
    Scenario(
        "the slow host comes back in another place",
        "node-b is slow by 0.7 s, second in the first attempt and first in the other",
        World(
            LEARNING,
            [
                Life(1, 500, "preempted", f"node-c: {_NOTICE}", "notice", machines=Machines(THREE)),
                Life(501, 1000, machines=Machines(("node-b", "node-d", "node-e"))),
            ],
            machines=Machines(THREE),
            work=Work(
                slowed_s=lambda steps, rank: np.where(rank == np.where(steps <= 500, 1, 0), 0.7, 0)
            ),
        ),
        {"network": "straggler"},
        blames={"network": ["node-b"], "stragglers": ["node-b"]},
        spares={"stragglers": ["node-a", "node-c", "node-d", "node-e"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "the slow host was replaced",
        "node-b takes 1.2 s longer; from step 501 on node-x is in its place and as fast as node-a",
        World(
            LEARNING,
            [
                Life(1, 500, "preempted", "asked to stop (SIGTERM)"),
                Life(501, 1000, machines=Machines(("node-a", "node-x"))),
            ],
            work=Work(slowed_s=lambda steps, rank: np.where((steps <= 500) & (rank == 1), 1.2, 0)),
        ),
        {"network": "straggler"},
        says={"network": ["step 500|step 501|step 499"]},
        blames={"stragglers": ["node-b"]},
        spares={"stragglers": ["node-x"], "network": ["node-x"]},
    ),
    Scenario(
        "from a capped data center to a good one",
        "300 steps at 100 Mbit/s, then 2,000 on other hosts at 10 Gbit/s",
        World(
            LEARNING,
            [
                Life(
                    1,
                    300,
                    "preempted",
                    "asked to stop (SIGINT)",
                    machines=Machines(("old-1", "old-2")),
                    link=Link(always(100 * MBIT_S), 1000),
                ),
                Life(301, 2300, machines=Machines(("new-1", "new-2")), link=_TEN),
            ],
            {"training.steps": 2300},
        ),
        {"network": "network-bound"},
        says={"network": ["step 30|step 29|attempt"]},
        # What was wrong with other hosts is no reason to leave out one of these; and no port
        # carries twice what it announces.
        spares={"network": ["new-1", "new-2"]},
        denies={"network": ["208 %", "207 %", "209 %"]},
        quantities=[STEP_TIME],
    ),
    Scenario(
        "the link was slow in one attempt of three",
        "the same four hosts; 800 Mbit/s in the second attempt, 10 Gbit/s before and after",
        World(
            LEARNING,
            [
                Life(1, 300, "preempted", "asked to stop (SIGTERM)", link=_TEN),
                Life(
                    301,
                    600,
                    "preempted",
                    "asked to stop (SIGTERM)",
                    link=Link(always(800 * MBIT_S), 10_000),
                ),
                Life(601, 900, link=_TEN),
            ],
            _settings(900),
            machines=Machines(FOUR),
        ),
        {"network": "network-bound"},
        says={"network": ["step 30|step 29", "step 60|step 59"]},
        alike={"network": list(FOUR)},
        quantities=[NETWORK_5, STEP_TIME],
    ),
    Scenario(
        "three hosts of two GPUs",
        "six ranks at 2 Gbit/s, three buckets of ten beside backward",
        World(
            LEARNING,
            [Life(1, 400)],
            _settings(400),
            machines=Machines(THREE, ranks_per_host=2),
            link=Link(always(2 * GBIT_S), 10_000, overlap=0.3),
        ),
        {"network": "network-bound", "traffic": "as predicted"},
        alike={"network": list(THREE)},
        quantities=[NETWORK_5, STRAGGLING_5],
    ),
    Scenario(
        "one machine would have been enough",
        "two lab nodes at 20 Mbit/s: 3 s of network for 0.2 s of computing, all the time",
        World(
            LEARNING,
            [Life(1, 200)],
            LAB_SETTINGS | {"training.steps": 200},
            machines=replace(LAB, hosts=TWO),
            link=lab_link(always(20 * MBIT_S)),
            work=LAB_WORK,
        ),
        {"network": "network-bound", "devices": "mostly waiting", **SIZE},
        denies={"more-machines": ["Yes"]},
        quantities=[NETWORK_5, STEP_TIME],
    ),
]
