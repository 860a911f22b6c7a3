"""What ended a run, what to do about it, and what it cost."""

from dataclasses import replace

import numpy as np

from scenarios.cap_cases import NETWORK_5
from scenarios.layout_cases import FOUR, TWO, lives
from scenarios.learning import below, power_law, turning
from scenarios.learning_cases import FALLING, LEVEL, SLOWING, STEPS, learns
from scenarios.life_cases import LOST, WALL
from scenarios.network_cases import LEARNING, WHOLE
from scenarios.scenario import Quantity, Scenario
from scenarios.world import (
    GBIT_S,
    MBIT_S,
    Dataset,
    Learning,
    Life,
    Link,
    Machines,
    World,
    always,
)

FALLS = Learning(FALLING, below(FALLING, 0.05), floor=1.0)
_FLAT = Learning(LEVEL, below(LEVEL, 0.05))
_STEEP = power_law(1.0, 3.0, 0.5, warmup=400)
_NO_STEPS_LIMIT = {"training.steps": None}
_STEPS_SETTING = ["training.steps=", "training.steps ="]
_CRASH = "RuntimeError: CUDA error: an illegal memory access was encountered"


def _cost(per_hour: float, hosts: int) -> Quantity:
    return Quantity("duration", "cost", lambda t: hosts * per_hour * t.wall_s / 3600, share=0.02)


def _failed(first: int, last: int, reason: str = _CRASH, **more: object) -> Life:
    return replace(Life(first, last, "failed", reason, down_s=60.0), **more)  # type: ignore[arg-type]


ENDING_CASES = [
    Scenario(
        "ended by steps, falling",
        "training.steps = 6,000 are done while the loss falls by 0.07 nats a quarter",
        learns(FALLS),
        {"trained": "not yet"},
        says={"trained": ["training.steps", "dragoman train"]},
        seeds=3,
    ),
    Scenario(
        "ended by hours, falling",
        "training.hours = 1.68 have passed, and the loss still falls; there is no other limit",
        replace(
            learns(FALLS, settings=_NO_STEPS_LIMIT | {"training.hours": 1.68}),
            lives=[Life(1, STEPS, "finished", "training.hours = 1.68 have passed", "hours")],
        ),
        {"trained": "not yet"},
        says={"trained": ["training.hours"]},
        denies={"trained": _STEPS_SETTING},
        seeds=3,
    ),
    Scenario(
        "ended by epochs, falling",
        "training.epochs = 3 of a small corpus are done, and the loss still falls",
        replace(
            learns(FALLS, settings=_NO_STEPS_LIMIT | {"training.epochs": 3}),
            lives=[Life(1, STEPS, "finished", "training.epochs = 3 are done", "epochs")],
            dataset=Dataset(1_700_000, 1_650_000, 340_000_000, 360_000_000, 50_000_000),
        ),
        {"trained": "not yet", "training-set": "700 MB, 1,650,000 lines"},
        says={"trained": ["training.epochs"]},
        denies={"trained": _STEPS_SETTING},
    ),
    Scenario(
        "ended by patience, falling",
        "BLEU varies by 1.5 and was no better in 5 evaluations, while the loss falls steadily",
        replace(
            learns(
                replace(FALLS, bleu_wobble=1.5, bleu_error=1.2),
                settings=_NO_STEPS_LIMIT | {"training.patience": 5},
            ),
            lives=[Life(1, STEPS, "finished", "no better bleu in 5 evaluations", "patience")],
        ),
        {"trained": "not yet"},
        says={"trained": ["training.patience"]},
        denies={"trained": _STEPS_SETTING},
        seeds=3,
    ),
    Scenario(
        "ended by patience, flat",
        "no better BLEU in 15 evaluations, and the loss is flat: it was time",
        replace(
            learns(_FLAT, settings=_NO_STEPS_LIMIT | {"training.patience": 15}),
            lives=[Life(1, STEPS, "finished", "no better bleu in 15 evaluations", "patience")],
        ),
        {"trained": "yes"},
        denies={"trained": ["training.patience=", "training.patience =", *_STEPS_SETTING]},
    ),
    Scenario(
        "ended by hours, flat",
        "training.hours = 1.68 have passed; the loss has been flat for more than half of them",
        replace(
            learns(_FLAT, settings=_NO_STEPS_LIMIT | {"training.hours": 1.68}),
            lives=[Life(1, STEPS, "finished", "training.hours = 1.68 have passed", "hours")],
        ),
        {"trained": "yes"},
        denies={"trained": ["training.hours=", "training.hours =", *_STEPS_SETTING]},
    ),
    Scenario(
        "hours before steps",
        "both limits are set; the hours ended it at step 6,000 of 20,000",
        replace(
            learns(FALLS, settings={"training.steps": 20_000, "training.hours": 1.68}),
            lives=[Life(1, STEPS, "finished", "training.hours = 1.68 have passed", "hours")],
        ),
        {"trained": "not yet"},
        says={"trained": ["training.hours"]},
        denies={"trained": _STEPS_SETTING},
    ),
    Scenario(
        "stopped by hand, falling",
        "SIGINT at step 6,000 of 20,000: the same command goes on",
        replace(
            learns(FALLS, settings={"training.steps": 20_000}),
            lives=[Life(1, STEPS, "preempted", "asked to stop (SIGINT)", "signal")],
        ),
        {"trained": "not yet"},
        says={"trained": ["dragoman train"]},
        denies={"trained": _STEPS_SETTING},
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "ended by steps, steep",
        "stopped after 2,000 steps while each quarter brings 0.2 nats",
        learns(
            Learning(_STEEP, below(_STEEP, 0.05), floor=1.0),
            2000,
            {"training.steps": 2000, "schedule.warmup_steps": 400},
        ),
        {"trained": "not yet", "overfitting": "no"},
        says={"trained": ["training.steps", "dragoman train"]},
    ),
    Scenario(
        "ended by patience, overfitting",
        "no better BLEU in 12 evaluations, because validation has been rising since step 3,000",
        replace(
            learns(
                Learning(turning(SLOWING, 3000, 0.08), below(SLOWING, 0.1, 0.05, 1500)),
                settings=_NO_STEPS_LIMIT | {"training.patience": 12},
            ),
            lives=[Life(1, STEPS, "finished", "no better bleu in 12 evaluations", "patience")],
        ),
        {"overfitting": "yes"},
        denies={"trained": ["training.patience=", "training.patience =", *_STEPS_SETTING]},
        seeds=3,
    ),
    Scenario(
        "ended by hours after five evaluations",
        "each of five evaluations is clearly lower than the one before; the hours are over",
        replace(
            learns(
                FALLS,
                1000,
                _NO_STEPS_LIMIT | {"training.hours": 0.3, "schedule.warmup_steps": 150},
            ),
            lives=[Life(1, 1000, "finished", "training.hours = 0.3 have passed", "hours")],
        ),
        {"trained": ("not yet", "too early to say"), "overfitting": ("no", "too early to say")},
        says={"trained": ["training.hours"]},
        denies={"trained": _STEPS_SETTING},
    ),
    Scenario(
        "the same failure at the same step",
        "three attempts fail at step 701 with the same error: it is not chance",
        World(
            LEARNING,
            [_failed(1, 700), _failed(501, 700), _failed(501, 700)],
            {"training.steps": 3000},
        ),
        {},
        says={"faults": ["same", "step 70", "three|3 times|3 attempts|3 of"]},
        denies={"faults": ["checkpoints.every_steps", "checkpoints.lost_minutes"]},
        quantities=[LOST],
        seeds=3,
    ),
    Scenario(
        "the same failure, then mended",
        "three attempts fail at step 701, the fourth gets by",
        World(
            LEARNING,
            [_failed(1, 700), _failed(501, 700), _failed(501, 700), Life(501, 1000)],
        ),
        {"network": "compute-bound"},
        says={"faults": ["same", "step 70"]},
        quantities=[LOST],
    ),
    Scenario(
        "three failures of different kinds",
        "a lost rank, an error and a notice, at steps 320, 611 and 750",
        World(
            LEARNING,
            [
                _failed(
                    1,
                    320,
                    "rank 1 on node-b has not been heard from for 8 s",
                    cause="lost-rank",
                    culprit=(1, "node-b"),
                ),
                _failed(301, 611),
                Life(601, 750, "preempted", "node-a: the host is about to be taken away", "notice"),
                Life(751, 1000),
            ],
            {"checkpoints.every_steps": 50},
        ),
        {"network": "compute-bound"},
        says={"faults": ["node-b"]},
        denies={"faults": ["same step", "same failure"]},
        quantities=[LOST],
    ),
    Scenario(
        "one host is lost again and again",
        "node-c of four falls silent at steps 220, 480 and 730; the run went on each time",
        World(
            LEARNING,
            [
                _failed(
                    first,
                    last,
                    f"rank 2 on node-c has not been heard from for 8 s: it was in backward of step"
                    f" {last + 1} then, and its process or host is gone",
                    cause="lost-rank",
                    culprit=(2, "node-c"),
                )
                for first, last in ((1, 220), (201, 480), (451, 730))
            ]
            + [Life(701, 1000)],
            {"checkpoints.every_steps": 50},
            machines=Machines(FOUR),
        ),
        {"network": "compute-bound"},
        blames={"faults": ["node-c"]},
        spares={"faults": ["node-a", "node-b", "node-d"]},
        quantities=[LOST],
    ),
    Scenario(
        "out of memory at one pair",
        "step 433 does not fit even with a single pair at a time",
        World(
            LEARNING,
            [
                _failed(
                    1,
                    432,
                    "step 433: rank 1 on node-b ran out of memory with a single pair at a time",
                    cause="out-of-memory",
                    culprit=(1, "node-b"),
                )
            ],
        ),
        {},
        says={"faults": ["memory"]},
        quantities=[LOST],
    ),
    Scenario(
        "priced and waiting, in euros",
        "four hosts at 2.50 EUR an hour, of which 95 % go to waiting for 100 Mbit/s",
        World(
            LEARNING,
            [Life(1, 300)],
            {"training.steps": 300, "cost.host_per_hour": 2.5, "cost.currency": "EUR"},
            machines=Machines(FOUR),
            link=Link(always(100 * MBIT_S), 1000, overlap=0.05),
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        says={"duration": ["EUR", "waiting"]},
        denies={"duration": ["USD"], "network": ["USD"]},
        quantities=[_cost(2.5, 4), NETWORK_5, WALL],
        seeds=3,
    ),
    Scenario(
        "priced in yen",
        "two hosts at 480 JPY an hour, nothing wrong",
        World(LEARNING, WHOLE, {"cost.host_per_hour": 480.0, "cost.currency": "JPY"}),
        {"network": "compute-bound"},
        says={"duration": ["JPY"]},
        denies={"duration": ["USD"], "network": ["USD"]},
        quantities=[_cost(480.0, 2)],
    ),
    Scenario(
        "no price known",
        "two hosts at 1 Gbit/s, and nobody said what they cost",
        World(LEARNING, WHOLE, link=Link(always(GBIT_S), 1000)),
        {"network": "network-bound"},
        denies={key: ["USD"] for key in ("duration", "network", "step-time", "devices")},
        quantities=[NETWORK_5],
    ),
    Scenario(
        "priced with two hosts, then four",
        "each host costs 6 USD an hour for as long as it is there",
        World(
            LEARNING,
            lives(TWO, FOUR, down_s=5.0),
            {
                "training.steps": 600,
                "cost.host_per_hour": 6.0,
                "evaluation.every_steps": 100,
                "checkpoints.every_steps": 100,
            },
        ),
        {"network": "compute-bound"},
        quantities=[
            Quantity(
                "duration",
                "cost",
                lambda t: 6.0 * sum(np.multiply((2, 4), t.attempt_seconds)) / 3600,
                share=0.05,
            )
        ],
    ),
]
