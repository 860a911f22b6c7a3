"""Trouble that moves from one host to another, goes round, or ends; and slow hosts without which a
run would be slower still."""

import numpy as np

from scenarios.network_cases import FOUR, LEARNING
from scenarios.scenario import Scenario
from scenarios.world import GBIT_S, MBIT_S, Course, Life, Link, Machines, Work, World, only, since

_LIFE = [Life(1, 600)]
_SETTINGS = {
    "training.steps": 600,
    "evaluation.every_steps": 100,
    "checkpoints.every_steps": 100,
}
_FIVE = ("node-a", "node-b", "node-c", "node-d", "node-e")
_SIXTEEN = tuple(f"node-{number:02}" for number in range(16))
_IS_OVER = ["until step 2", "over since step 2"]


def _first_then(first: int, until: int, then: int, value: float, otherwise: float) -> Course:
    """`value` for one rank or host up to a step, and for another one from there on."""
    return lambda steps, who: np.where(
        np.where(steps <= until, first, then) == who, value, otherwise
    )


def _round(every: int, value: float, otherwise: float) -> Course:
    """`value` for one of four after another, so many steps each."""
    return lambda steps, who: np.where(steps // every % 4 == who, value, otherwise)


def _world(
    work: Work | None = None,
    link: Link | None = None,
    machines: Machines | None = None,
    life: list[Life] = _LIFE,
    **settings: object,
) -> World:
    return World(
        LEARNING,
        life,
        _SETTINGS | settings,
        machines=machines or Machines(FOUR),
        work=work or Work(),
        link=link or Link(),
    )


def _capped(rate: Course) -> Link:
    return Link(rate, 10_000)


MOVING_CASES = [
    Scenario(
        "slow host, then another",
        "node-a takes 1 s longer up to step 330 of 600, node-d since",
        _world(Work(slowed_s=_first_then(0, 330, 3, 1.0, 0.0))),
        {"network": "straggler"},
        says={
            key: ["node-a until step 33", "node-d since step 33"]
            for key in ("network", "stragglers", "traffic")
        },
        denies={
            key: ["over since", "slows node-a", "without node-a"]
            for key in ("network", "stragglers", "traffic", "duration")
        },
        blames={"network": ["node-d"], "stragglers": ["node-d"]},
        spares={"network": ["node-b", "node-c"], "stragglers": ["node-b", "node-c"]},
        seeds=3,
    ),
    Scenario(
        "slow host, then another since lately",
        "node-a takes 1 s longer up to step 500 of 600, node-d since",
        _world(Work(slowed_s=_first_then(0, 500, 3, 1.0, 0.0))),
        {"network": "straggler"},
        says={
            key: ["node-a until step ", "node-d since step ", "slows node-d"]
            for key in ("network", "stragglers")
        },
        denies={"network": ["over since", "slows node-a"], "stragglers": ["slows node-a"]},
    ),
    Scenario(
        "slow hosts that go round",
        "each of four hosts takes 1 s longer for 50 steps, one after another, three times",
        _world(Work(slowed_s=_round(50, 1.0, 0.0))),
        {"network": "straggler"},
        says={"stragglers": ["in turn"]},
        denies={"network": ["over since"], "stragglers": ["over since"]},
        spares={"network": list(FOUR)},
    ),
    Scenario(
        "capped host, then another",
        "node-a at 300 Mbit/s of 10 Gbit/s up to step 330 of 600, node-c since",
        _world(link=_capped(_first_then(0, 330, 2, 300 * MBIT_S, 10 * GBIT_S))),
        {"network": "network-bound", "devices": "mostly waiting"},
        says={"network": ["node-a until step 3", "node-c since step 3", "ssh node-c"]},
        denies={"network": ["over since", "ssh node-a", "without node-a", "connection of node-a"]},
        blames={"network": ["node-c"]},
        spares={"network": ["node-b", "node-d"]},
        seeds=3,
    ),
    Scenario(
        "cap that goes round",
        "300 Mbit/s of 10 Gbit/s on one of four hosts after another, for 50 steps each",
        _world(link=_capped(_round(50, 300 * MBIT_S, 10 * GBIT_S))),
        {"network": "network-bound", "devices": "mostly waiting"},
        spares={"network": list(FOUR)},
        seeds=3,
    ),
    Scenario(
        "slow network, then a slow host",
        "1 Gbit/s up to step 300 of 600, then 25 Gbit/s, but node-c takes 2 s longer",
        _world(
            Work(slowed_s=lambda steps, rank: np.where((steps > 300) & (rank == 2), 2.0, 0.0)),
            Link(since(301, GBIT_S, 25 * GBIT_S)),
        ),
        {"network": "straggler", "devices": ("partly used", "mostly waiting")},
        says={"network": ["since step 30"], "stragglers": ["since step 30"]},
        denies={"network": ["over since"], "stragglers": ["over since"]},
        blames={"network": ["node-c"], "stragglers": ["node-c"]},
    ),
    Scenario(
        "slow host that has recovered",
        "node-c takes 0.9 s longer up to step 250 of 600, and nothing is wrong since",
        _world(Work(slowed_s=lambda steps, rank: np.where((steps <= 250) & (rank == 2), 0.9, 0.0))),
        {"network": "straggler"},
        says=dict.fromkeys(("network", "stragglers", "traffic", "duration"), _IS_OVER),
        denies={"network": ["train without"], "stragglers": ["train without"]},
        blames={"network": ["node-c"], "stragglers": ["node-c"]},
    ),
    Scenario(
        "slow network that has recovered",
        "500 Mbit/s between two hosts up to step 200 of 600, 25 Gbit/s since",
        _world(
            link=Link(since(201, 500 * MBIT_S, 25 * GBIT_S)),
            machines=Machines(),
        ),
        {"network": "network-bound"},
        says=dict.fromkeys(("network", "traffic", "duration"), _IS_OVER),
        denies={"network": ["tokens_per_update"]},
    ),
    Scenario(
        "two slow hosts of sixteen",
        "node-03 takes 0.5 s longer and node-09 0.4 s; fourteen hosts would have more work each "
        "and be slower",
        _world(
            Work(slowed_s=lambda steps, rank: {3: 0.5, 9: 0.4}.get(rank, 0.0)),
            machines=Machines(_SIXTEEN),
            life=[Life(1, 200)],
            **{"training.steps": 200},
        ),
        {"network": "straggler"},
        says={"network": ["for host in node-03 node-09"], "stragglers": ["node-03 and node-09"]},
        denies={"network": ["train without"], "stragglers": ["train without"]},
    ),
    Scenario(
        "five hosts, one slow in receiving",
        "node-c receives at 400 Mbit/s from node-b; all else passes at 10 Gbit/s",
        _world(
            link=Link(
                lambda steps, host: 10 * GBIT_S,
                10_000,
                receive_rate=only(2, 400 * MBIT_S, 10 * GBIT_S),
            ),
            machines=Machines(_FIVE),
            life=[Life(1, 200)],
            **{"training.steps": 200},
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        says={"network": ["from node-b to node-c"]},
        denies={"network": ["Train without", "connection of node-b", "what node-b sends"]},
        spares={"network": ["node-a", "node-d", "node-e"]},
        alike={"network": ["node-b", "node-c"]},
        seeds=2,
    ),
    Scenario(
        "other programs that have ended",
        "up to step 200 of 600 other programs take 60 % of node-b, which then takes 1.2 s longer",
        _world(
            Work(slowed_s=lambda steps, rank: np.where((steps <= 200) & (rank == 1), 1.2, 0.0)),
            machines=Machines(
                ("node-a", "node-b", "node-c"),
                device="cpu",
                name="AMD EPYC",
                precision="fp32",
                foreign_cpu_percent=lambda steps, host: np.where(
                    (steps <= 200) & (host == 1), 60.0, 0.0
                ),
            ),
            **{"training.precision": "fp32"},
        ),
        {"network": "straggler"},
        says=dict.fromkeys(("network", "stragglers", "traffic", "duration"), _IS_OVER),
        blames={"network": ["node-b"], "stragglers": ["node-b"]},
        spares={"network": ["node-a", "node-c"], "stragglers": ["node-a", "node-c"]},
    ),
    Scenario(
        "one slow host, another, then the link",
        "node-a takes 1 s longer up to step 200, node-c up to step 400, then all have 1.2 Gbit/s",
        _world(
            Work(
                slowed_s=lambda steps, rank: np.where(
                    ((rank == 0) & (steps <= 200)) | ((rank == 2) & (steps > 200) & (steps <= 400)),
                    1.0,
                    0.0,
                )
            ),
            Link(since(401, 10 * GBIT_S, 1.2 * GBIT_S), 10_000),
        ),
        {"network": "network-bound"},
        says={
            "network": ["since step 40|since step 39"],
            "stragglers": ["over since step 40|over since step 39", "node-a until step 2"],
        },
        blames={"stragglers": ["node-a", "node-c"]},
        denies={"stragglers": ["from step to step"]},
    ),
]
