"""Devices, memory, padding, traffic and sizes."""

from scenarios.network_cases import LEARNING, NETWORK_SHARE, SENT, SLOW, STEP_TIME, WHOLE
from scenarios.scenario import Scenario
from scenarios.world import Dataset, Life, Link, Machines, Recorded, Work, World

DEVICE_CASES = [
    Scenario(
        "one rank alone",
        "one host, one GPU: no network at all",
        World(LEARNING, WHOLE, machines=Machines(("node-a",))),
        {"network": "compute-bound", "devices": "fully used", "traffic": "no traffic"},
        quantities=[STEP_TIME],
    ),
    Scenario(
        "two ranks on one host",
        "two GPUs in one machine: all gradients pass its memory",
        World(LEARNING, WHOLE, machines=Machines(("node-a",), ranks_per_host=2)),
        {"network": "compute-bound", "devices": "fully used"},
        denies={"network": ["of the 25 Gbit/s"]},  # nothing passes the port
    ),
    Scenario(
        "larger updates on a slow link",
        "1 Gbit/s, but 16 micro-batches an update: 14 s of computing for 2 s of network",
        World(
            LEARNING,
            [Life(1, 400)],
            {
                "training.steps": 400,
                "training.tokens_per_update": 400_000,
                "schedule.warmup_steps": 50,
                "evaluation.every_steps": 100,
                "checkpoints.every_steps": 100,
            },
            link=SLOW,
            work=Work(4.8, 9.2, first_step_s=12.0, passes=16),
        ),
        {"network": "compute-bound", "devices": "fully used"},
    ),
    Scenario(
        "sharded",
        "weights are gathered all along: nobody has measured the network's part",
        World(LEARNING, WHOLE, {"training.sharding": "full"}, link=SLOW),
        {"network": "not known", "devices": ("mostly waiting", "partly used", "not known")},
        denies={"traffic": ["not the traffic"]},  # in truth it takes three quarters of a step
    ),
    Scenario(
        "power-capped",
        "the GPUs compute all the time, at a power limit of 150 W that lowers their clock",
        World(
            LEARNING,
            WHOLE,
            machines=Machines(power_limit_w=150.0, power_computing_w=150.0, clock_mhz=840.0),
        ),
        {"network": "compute-bound", "devices": "fully used"},
        says={"devices": ["power"]},
    ),
    Scenario(
        "small kernels",
        "the GPUs are never idle and reach 6 % of their peak at a third of their power",
        World(LEARNING, WHOLE, machines=Machines(efficiency=0.06, power_computing_w=95.0)),
        {"network": "compute-bound", "devices": ("partly used", "mostly waiting")},
    ),
    Scenario(
        "padding waste",
        "45 % of all positions are padding",
        World(LEARNING, WHOLE, work=Work(padding=0.45)),
        {"network": "compute-bound"},
        says={"padding": ["45"]},
    ),
    Scenario(
        "memory near its limit",
        "97 % of the GPU's memory at the peak",
        World(LEARNING, WHOLE, work=Work(memory_share=0.97)),
        {"network": "compute-bound"},
        says={"memory": ["97|96"]},
    ),
    Scenario(
        "saving stalls steps",
        "the step after each save waits 9 s for the copy; all others take 0.95 s",
        World(
            LEARNING,
            WHOLE,
            {"checkpoints.every_steps": 25},
            work=Work(stall_s=9.0),
        ),
        {},
        says={"step-time": ["checkpoint|sav"]},
        quantities=[STEP_TIME],
    ),
    Scenario(
        "more traffic than predicted",
        "somebody else's copies pass the same interface: 1.7 times the bytes",
        World(LEARNING, WHOLE, link=Link(traffic_factor=1.7)),
        {"traffic": "more than predicted", "network": "compute-bound"},
        quantities=[SENT],
    ),
    Scenario(
        "less traffic than predicted",
        "half of the bytes: what travels is not fp32",
        World(LEARNING, WHOLE, link=Link(traffic_factor=0.5)),
        {"traffic": "less than predicted", "network": "compute-bound"},
        quantities=[SENT],
    ),
    Scenario(
        "older records",
        "steps and evaluations only, as before sensors, counts, error bars and traffic came",
        World(
            LEARNING,
            WHOLE,
            link=SLOW,
            recorded=Recorded(
                agreement=False,
                sensors=False,
                counts=False,
                traffic=False,
                devices=False,
                errors=False,
            ),
        ),
        {
            "network": "network-bound",
            "devices": "mostly waiting",
            "traffic": "not known",
        },
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "small corpus",
        "the training set is 29,000 lines",
        World(LEARNING, WHOLE, dataset=Dataset(29_000, 29_000, 1_800_000, 2_100_000, 380_000)),
        {"training-set": ("3.9 MB, 29,000 lines", "3.90 MB, 29,000 lines")},
    ),
]
