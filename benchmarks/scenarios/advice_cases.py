"""Runs for which the usual advice would be wrong: how they ended, and who started them."""

from dataclasses import replace

from scenarios.ending_cases import FALLS
from scenarios.layout_cases import FOUR
from scenarios.learning_cases import learns
from scenarios.network_cases import LEARNING
from scenarios.scenario import Scenario
from scenarios.world import (
    GBIT_S,
    Life,
    Link,
    Machines,
    Rollback,
    Started,
    Work,
    World,
    always,
    only,
)

SRUN = Started("srun", ["/home/u/venv/bin/dragoman", "train", "recipe.toml"])
TORCHRUN = Started("torchrun", ["/usr/lib/python3/dragoman/__main__.py", "train", "recipe.toml"])
MPIRUN = Started("mpirun", ["/home/u/venv/bin/dragoman", "train", "recipe.toml"])
ADDRESSES = ("203.0.113.5", "203.0.113.6", "203.0.113.7")
BY_ADDRESS = Started("dragoman", ["dragoman", "train"], ["--hosts", ",".join(ADDRESSES)])
OFTEN = {"evaluation.every_steps": 100, "checkpoints.every_steps": 100}
SAVING = ["checkpoints.every_steps", "checkpoints.lost_minutes"]
BARE = ["dragoman train", "__main__.py", "until "]
GOES_ON = ["Continue training", "Train on"]


def _ended(last: int, reason: str, **more: object) -> Life:
    return replace(Life(1, last, "failed", reason), **more)  # type: ignore[arg-type]


def _preempted(times: int, each: int) -> list[Life]:
    why = "asked to stop (SIGTERM)"
    return [
        Life(number * each + 1, (number + 1) * each, "preempted", why, down_s=900.0)
        for number in range(times)
    ]


ADVICE_CASES = [
    Scenario(
        "srun, preempted again and again",
        "six attempts of a Slurm job, each 15 minutes after the one before",
        World(LEARNING, _preempted(6, 60), {"training.steps": 600} | OFTEN, started=SRUN),
        {},
        says={"faults": ["srun"]},
        denies={"faults": BARE, "trained": BARE},
    ),
    Scenario(
        "torchrun, killed",
        "four GPUs of one box, killed without a word at step 730 of 2,000",
        World(
            LEARNING,
            [Life(1, 730, "")],
            {"training.steps": 2000, "evaluation.every_steps": 200, "checkpoints.every_steps": 200},
            machines=Machines(("box",), ranks_per_host=4),
            link=Link(shows_on_interfaces=False),
            started=TORCHRUN,
        ),
        {},
        says={"trained": ["torchrun"], "faults": ["torchrun"]},
        denies={"faults": BARE, "trained": [*BARE, "step 1,400"]},
    ),
    Scenario(
        "srun, hangs",
        "a Slurm job on four hosts does nothing since step 400",
        World(
            LEARNING,
            [Life(1, 400, "", silent_s=2400.0)],
            {"training.steps": 2000} | OFTEN,
            machines=Machines(FOUR),
            started=SRUN,
        ),
        {},
        says={"hangs": ["srun", "scancel"]},
        denies={"hangs": [*BARE, "Ctrl-C"]},
        read_after_s=5.0,
    ),
    Scenario(
        "mpirun, a slow network",
        "four hosts at 1 Gbit/s, started by mpirun",
        World(
            LEARNING,
            [Life(1, 400)],
            {"training.steps": 400} | OFTEN,
            machines=Machines(FOUR),
            link=Link(always(GBIT_S), 1000),
            started=MPIRUN,
        ),
        {"network": "network-bound"},
        says={"network": ["mpirun"]},
        denies={"network": BARE, "trained": BARE},
    ),
    Scenario(
        "hosts named by address",
        "--hosts names three addresses, and the second is slow by a second",
        World(
            LEARNING,
            [Life(1, 300)],
            {"training.steps": 300} | OFTEN,
            machines=Machines(ADDRESSES),
            work=Work(slowed_s=only(1, 1.0)),
            started=BY_ADDRESS,
        ),
        {"network": "straggler"},
        says={
            "network": ["ssh 203.0.113.6", "--hosts 203.0.113.5,203.0.113.7"],
            "stragglers": ["ssh 203.0.113.6"],
        },
    ),
    Scenario(
        "weights differ",
        "found at step 1,500, equal at 1,000: what was saved between them is not to be used",
        World(
            LEARNING,
            [
                _ended(
                    1500,
                    "step 1,500: rank 1 on node-b has other weights than the rest",
                    cause="weights-differ",
                    culprit=(1, "node-b"),
                )
            ],
            {"training.steps": 2000, "evaluation.every_steps": 200, "checkpoints.every_steps": 200},
        ),
        {},
        says={"faults": ["node-b", "step-00001200", "step-00001400", "after step 1,000"]},
        denies={"trained": GOES_ON, "faults": [*SAVING, "step-00001000", "until "]},
        spares={"faults": ["node-a"]},
    ),
    Scenario(
        "out of memory at one pair, nearly full",
        "step 37 does not fit even with a single pair; smaller micro-batches cannot help",
        World(
            LEARNING,
            [
                _ended(
                    36,
                    "step 37: rank 1 on node-b ran out of memory with a single pair at a time",
                    cause="out-of-memory",
                    culprit=(1, "node-b"),
                )
            ],
            work=Work(memory_share=0.99),
        ),
        {"trained": "not known", "overfitting": "not known", "checkpoint-files": "not known"}
        | {"checkpoint-size": "not known"},
        says={"faults": ["data.max_length", "node-b"], "memory": ["data.max_length", "node-b"]},
        denies={"faults": ["micro_batch_tokens", *SAVING], "memory": ["micro_batch_tokens"]},
    ),
    Scenario(
        "given up after rollbacks",
        "the loss ran away four times; what is recorded looks healthy at the end",
        World(
            LEARNING,
            [
                _ended(
                    1360,
                    "step 1,360: the loss exploded 4 times",
                    cause="diverged",
                    rollbacks=[
                        Rollback(700, 600, "the loss exploded"),
                        Rollback(1100, 1000, "the loss exploded"),
                        Rollback(1250, 1200, "the loss exploded"),
                    ],
                )
            ],
            {"training.steps": 2000, "evaluation.every_steps": 200, "checkpoints.every_steps": 200},
        ),
        {"trained": "not yet"},
        says={"trained": ["diverged", "schedule.scale"], "faults": ["schedule.scale"]},
        denies={"trained": GOES_ON, "faults": SAVING},
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "a full disk on one host",
        "gamma could not save after step 230; nobody has made room yet",
        World(
            LEARNING,
            [
                _ended(
                    230,
                    "StorageError: checkpoints: No space left on device",
                    culprit=(2, "gamma"),
                    could_not_write=True,
                )
            ],
            {"training.steps": 900} | OFTEN,
            machines=Machines(("alpha", "beta", "gamma", "delta")),
        ),
        {},
        says={"faults": ["ssh gamma"]},
        blames={"faults": ["gamma"]},
        spares={"faults": ["alpha", "beta", "delta"]},
        denies={"faults": [*SAVING, "until "], "trained": GOES_ON},
    ),
    Scenario(
        "in progress, a slow network",
        "four hosts at 1 Gbit/s, still training: whatever starts it again must stop it first",
        World(
            LEARNING,
            [Life(1, 400, "")],
            {"training.steps": 2000} | OFTEN,
            machines=Machines(FOUR),
            link=Link(always(GBIT_S), 1000),
        ),
        {"network": "network-bound"},
        says={"network": ["Ctrl-C"]},
        read_after_s=5.0,
    ),
    Scenario(
        "a warm-up longer than the training",
        "6,000 steps are done in a warm-up of 20,000",
        learns(FALLS, settings={"schedule.warmup_steps": 20_000}),
        {"trained": "too early to say"},
        says={"trained": ["schedule.warmup_steps=", "schedule.warmup_steps = 20,000"]},
        denies={"trained": [*GOES_ON, "just begun"]},
    ),
    Scenario(
        "hardly any evaluations",
        "two in 2,000 steps, and no more to come",
        World(
            LEARNING,
            [Life(1, 2000)],
            {"training.steps": 2000, "evaluation.every_steps": 1000},
        ),
        {"trained": "too early to say"},
        says={"trained": ["evaluation.every_steps"]},
    ),
    Scenario(
        "stopped before its limit",
        "SIGINT at step 6,000 of 20,000: its own limit is where it goes on to",
        replace(
            learns(FALLS, settings={"training.steps": 20_000}),
            lives=[Life(1, 6000, "preempted", "asked to stop (SIGINT)")],
        ),
        {"trained": "not yet"},
        says={"trained": ["to step 20,000"]},
        denies={"trained": ["to step 7,"]},
        may_say=frozenset({"faults"}),
    ),
]
