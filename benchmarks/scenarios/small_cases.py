"""Small runs on CPUs, as in a lab: short steps, a tiny model, few steps, uneven machines."""

from dataclasses import replace

from scenarios.network_cases import LEARNING, NETWORK_SHARE, STEP_TIME, STRAGGLING
from scenarios.scenario import Scenario
from scenarios.world import GBIT_S, MBIT_S, Life, Link, Machines, Work, World, always, only

LAB = Machines(
    device="cpu", name="AMD EPYC 7B13", precision="fp32", cores=2, memory_bytes=8e9, efficiency=0.5
)
SETTINGS = {
    "model.preset": "transformer-tiny",
    "tokenizer.vocabulary": 4000,
    "training.precision": "fp32",
    "training.tokens_per_update": 2000,
    "training.steps": 200,
    "evaluation.every_steps": 100,
    "checkpoints.every_steps": 100,
    "schedule.warmup_steps": 50,
}
SIZE = {"checkpoint-size": ("23 MB", "22.8 MB")}
_CALM = Work(
    0.07, 0.13, jitter=0.05, first_step_s=0.4, stall_s=0.004, optimizer_s=0.006, rest_s=0.004
)
_UNEVEN = replace(_CALM, batch_spread=0.06)

SMALL_CASES = [
    Scenario(
        "small run, nothing wrong",
        "200 steps of 0.2 s on two CPUs at 10 Gbit/s, all a bit uneven",
        World(
            LEARNING,
            [Life(1, 200)],
            SETTINGS,
            machines=LAB,
            link=Link(always(10 * GBIT_S), 10_000, latency_s=1e-4, messages=1),
            work=_UNEVEN,
        ),
        {"network": "compute-bound", "devices": "fully used", "traffic": "as predicted", **SIZE},
        quantities=[STEP_TIME],
    ),
    Scenario(
        "small run, slow link",
        "100 Mbit/s between two CPUs: 0.5 s of network for 0.2 s of computing",
        World(
            LEARNING,
            [Life(1, 200)],
            SETTINGS,
            machines=LAB,
            link=Link(always(100 * MBIT_S), 10_000, latency_s=1e-4, messages=1, overlap=0.1),
            work=_UNEVEN,
        ),
        {"network": "network-bound", "devices": "mostly waiting", **SIZE},
        quantities=[NETWORK_SHARE],
    ),
    Scenario(
        "small run, straggler",
        "60 steps on three CPUs, one of them slower by 0.15 s",
        World(
            LEARNING,
            [Life(1, 60)],
            SETTINGS | {"training.steps": 60},
            machines=Machines(
                ("node-a", "node-b", "node-c"),
                device="cpu",
                name="AMD EPYC 7B13",
                precision="fp32",
                cores=2,
                memory_bytes=8e9,
            ),
            link=Link(always(10 * GBIT_S), 10_000, latency_s=1e-4, messages=1),
            work=replace(_CALM, slowed_s=only(1, 0.15)),
        ),
        {
            "network": "straggler",
            "trained": ("too early to say", "not known"),
            "overfitting": ("too early to say", "not known"),
            **SIZE,
        },
        says={"stragglers": ["node-b"]},
        quantities=[STRAGGLING],
    ),
    Scenario(
        "small run, slow data",
        "each of 200 steps waits 0.2 s for its data",
        World(
            LEARNING,
            [Life(1, 200)],
            SETTINGS,
            machines=LAB,
            link=Link(always(10 * GBIT_S), 10_000, latency_s=1e-4, messages=1),
            work=replace(_CALM, data_s=always(0.2)),
        ),
        {"network": "input-bound", **SIZE},
        may_say=frozenset({"stragglers"}),
    ),
    Scenario(
        "small run, alone",
        "one CPU, 200 steps: no network",
        World(
            LEARNING,
            [Life(1, 200)],
            SETTINGS,
            machines=Machines(
                ("node-a",),
                device="cpu",
                name="AMD EPYC 7B13",
                precision="fp32",
                cores=2,
                memory_bytes=8e9,
            ),
            work=_UNEVEN,
        ),
        {"network": "compute-bound", "traffic": "no traffic", "devices": "fully used", **SIZE},
    ),
]
