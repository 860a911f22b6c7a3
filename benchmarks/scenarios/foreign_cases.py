"""Processors that somebody else has: other programs, other virtual machines, a container's limit.

A rank's own share of its host's processor is only in the readings of that host.
"""

from dataclasses import replace

import numpy as np

from scenarios.cap_cases import LAB_THREE, LAB_WORK, NETWORK_5, STRAGGLING_5, lab, lab_link
from scenarios.network_cases import FOUR, LEARNING, WHOLE
from scenarios.scenario import Scenario
from scenarios.small_cases import LAB, SIZE
from scenarios.world import (
    GBIT_S,
    MBIT_S,
    Course,
    Machines,
    Work,
    World,
    always,
    at,
    only,
    scattered,
    since,
)

_FAST = replace(lab_link(always(10 * GBIT_S)), nominal_mbit_s=10_000)
_BASE_S = LAB_WORK.forward_s + LAB_WORK.backward_s
OTHERS = "other program|foreign|else runs|something else"
STOLEN = "steal|stolen|hypervisor|virtual machine|ther machines on the"


def _taken(percent: float) -> float:
    """Seconds by which a step is longer if that much of a processor is gone."""
    return _BASE_S * (1 / (1 - percent / 100) - 1)


def _slowed(course: Course) -> Work:
    return replace(LAB_WORK, slowed_s=course)


FOREIGN_CASES = [
    Scenario(
        "another program on one of three hosts",
        "it takes 60 % of node-b's processor; node-b needs 0.3 s longer for each step",
        lab(
            _FAST,
            _slowed(only(1, _taken(60))),
            replace(LAB_THREE, foreign_cpu_percent=only(1, 60.0)),
        ),
        {"network": "straggler", **SIZE},
        says={"stragglers": [OTHERS]},
        blames={"network": ["node-b"], "stragglers": ["node-b"]},
        spares={"network": ["node-a", "node-c"], "stragglers": ["node-a", "node-c"]},
        quantities=[STRAGGLING_5, NETWORK_5],
        seeds=3,
    ),
    Scenario(
        "other programs on all hosts",
        "they take 60 % of each of three processors; all ranks are slow, and alike",
        lab(
            _FAST, _slowed(always(_taken(60))), replace(LAB_THREE, foreign_cpu_percent=always(60.0))
        ),
        {"network": "compute-bound", **SIZE},
        says={"devices": [OTHERS], "network": [OTHERS]},
        denies={
            "devices": ["training.micro_batch_tokens ="],
            "network": ["training.micro_batch_tokens ="],
        },
        seeds=3,
    ),
    Scenario(
        "other programs on two of four hosts",
        "they take half of node-c and node-d, two ranks each",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(
                FOUR,
                ranks_per_host=2,
                device="cpu",
                name="AMD EPYC",
                precision="fp32",
                memory_bytes=128e9,
                foreign_cpu_percent=lambda steps, host: 50.0 if host >= 2 else 0.0,
            ),
            work=Work(slowed_s=lambda steps, rank: 0.88 if rank >= 4 else 0.0),
        ),
        {"network": "straggler"},
        says={"stragglers": [OTHERS]},
        blames={"stragglers": ["node-c", "node-d"]},
        spares={"stragglers": ["node-a", "node-b"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "another program now and then",
        "it takes 70 % of node-c's processor in three of ten steps",
        lab(
            _FAST,
            _slowed(at(scattered(0.3), only(2, _taken(70)), always(0.0))),
            replace(
                LAB_THREE,
                foreign_cpu_percent=at(scattered(0.3), only(2, 70.0), always(0.0)),
            ),
        ),
        {"network": "straggler", **SIZE},
        says={"stragglers": ["26 %|27 %|28 %|29 %|30 %|31 %|32 %|33 %|34 %|35 %"]},
        blames={"network": ["node-c"], "stragglers": ["node-c"]},
        spares={"stragglers": ["node-a", "node-b"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "another program since the middle",
        "it takes 60 % of node-a's processor from step 150 of 300 on",
        lab(
            _FAST,
            _slowed(lambda steps, rank: np.where((steps >= 150) & (rank == 0), _taken(60), 0.0)),
            replace(
                LAB_THREE,
                foreign_cpu_percent=lambda steps, host: np.where(
                    (steps >= 150) & (host == 0), 60.0, 0.0
                ),
            ),
        ),
        {"network": "straggler", **SIZE},
        says={"network": ["step 14|step 15"]},
        blames={"network": ["node-a"], "stragglers": ["node-a"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "other programs beside GPUs",
        "they take 40 % of the processors of two hosts, and the GPUs do not mind",
        World(LEARNING, WHOLE, machines=Machines(foreign_cpu_percent=always(40.0))),
        {"network": "compute-bound", "devices": "fully used"},
    ),
    Scenario(
        "another program that holds up the data",
        "it takes 88 % of node-b's processor; node-b's GPU waits 0.8 s for each batch",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(FOUR, foreign_cpu_percent=only(1, 88.0)),
            work=Work(data_s=only(1, 0.8, 0.002)),
        ),
        {"network": "straggler"},
        says={"stragglers": ["data"], "network": ["data"]},
        blames={"network": ["node-b"], "stragglers": ["node-b"]},
        spares={"stragglers": ["node-a", "node-c", "node-d"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "stolen time on one host",
        "the hypervisor of node-b gives 45 % of its processor to other machines",
        lab(_FAST, _slowed(only(1, _taken(45))), replace(LAB_THREE, steal_percent=only(1, 45.0))),
        {"network": "straggler", **SIZE},
        says={"stragglers": [STOLEN]},
        denies={"stragglers": ["rograms that are not part"], "network": ["rograms that are not"]},
        blames={"network": ["node-b"], "stragglers": ["node-b"]},
        spares={"stragglers": ["node-a", "node-c"]},
        quantities=[STRAGGLING_5],
    ),
    Scenario(
        "stolen time everywhere",
        "40 % of every host's processor goes to other machines",
        lab(_FAST, _slowed(always(_taken(40))), replace(LAB_THREE, steal_percent=always(40.0))),
        {"network": "compute-bound", **SIZE},
        says={"devices": [STOLEN]},
        denies={"devices": ["training.micro_batch_tokens ="]},
    ),
    Scenario(
        "a quota on one host",
        "the container on node-c may use 0.8 of its 2 cores; nobody else is there",
        lab(_FAST, _slowed(only(2, _taken(60))), replace(LAB_THREE, quota_cores=only(2, 0.8))),
        {"network": "straggler", **SIZE},
        blames={"network": ["node-c"], "stragglers": ["node-c"]},
        spares={"stragglers": ["node-a", "node-b"]},
        quantities=[STRAGGLING_5, NETWORK_5],
        seeds=3,
    ),
    Scenario(
        "a quota on all hosts",
        "each container may use one of two cores: the ranks are slow, and alike",
        lab(_FAST, _slowed(always(_taken(50))), replace(LAB_THREE, quota_cores=always(1.0))),
        {"network": "compute-bound", **SIZE},
    ),
    Scenario(
        "another program here, a capped port there",
        "60 % of node-a's processor is gone, and node-c's port gives 60 Mbit/s",
        lab(
            lab_link(only(2, 60 * MBIT_S, GBIT_S)),
            _slowed(only(0, _taken(60))),
            replace(LAB_THREE, foreign_cpu_percent=only(0, 60.0)),
        ),
        {"network": "network-bound", "devices": "mostly waiting", **SIZE},
        blames={"network": ["node-c"], "stragglers": ["node-a"]},
        spares={"network": ["node-b"], "stragglers": ["node-b", "node-c"]},
        quantities=[NETWORK_5, STRAGGLING_5],
    ),
    Scenario(
        "another program on the only host",
        "one CPU worker; from step 100 of 300 on another program takes 65 % of the processor",
        lab(
            _FAST,
            _slowed(since(100, 0.0, _taken(65))),
            replace(LAB, hosts=("node-a",), foreign_cpu_percent=since(100, 0.0, 65.0)),
        ),
        {"network": "compute-bound", "traffic": "no traffic", **SIZE},
        says={"devices": [OTHERS]},
        denies={"devices": ["training.micro_batch_tokens ="]},
    ),
]
