"""Advice that cannot be followed in the run that it is given for is noticed.

`test_scenarios.py` asks so of every simulated run.
"""

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from followable import unfollowable
from scenarios.scenario import Scenario
from scenarios.table import SCENARIOS

from dragoman.diagnosis.commands import limits_beyond, train_command
from dragoman.diagnosis.findings import Advice, Finding


def problems(played: Callable[[Scenario], Any], command: str, text: str = "Do it.") -> list[str]:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "constant straggler")
    finding = Finding("yes", "high", "Yes.", (), [Advice(text, command)])
    return unfollowable(played(scenario).run, {"network": finding})


@pytest.mark.parametrize(
    "command",
    [
        "training.tokens_per_update = 100000",
        "ssh node-c nvidia-smi",
        "ssh node-c 'ps aux | sort -nk3 | tail'",
        "until dragoman report {run}; do sleep 5; done",
        "for host in node-a node-b; do ssh $host 'dmesg | tail'; done",
        "ping -c 5 node-b && ssh node-a ethtool eth0",
        "dragoman evaluate {run} --checkpoint latest",
        "dragoman train {run}/config.toml --run {run} --set training.steps=5000",
        "dragoman train {run}/config.toml --run {run}-2 --set training.tokens_per_update=50000",
    ],
)
def test_what_works_is_left_alone(played: Callable[[Scenario], Any], command: str) -> None:
    run = played(next(s for s in SCENARIOS if s.name == "constant straggler")).run
    root = run.record.directory.root
    (root / "checkpoints" / "latest").mkdir(exist_ok=True)

    assert problems(played, command.format(run=root)) == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "has no command"),
        ("training.steps = 0", "refuses"),
        ("training.bf16_on_the_wire = true", "refuses"),
        ("model.dropout = 0.1", "already"),
        ("ssh node-x nvidia-smi", "not a host"),
        ("ssh node-c fix-everything", "not a known program"),
        ("ssh <host> top", "blank"),
        ("for host in a b", "bash refuses"),
        ("for host in node-a node-x; do ssh $host dmesg; done", "node-x is not a host"),
        ("dragoman diagnose {run}", "no command diagnose"),
        ("dragoman evaluate {run} --beams 4", "dragoman refuses"),
        ("dragoman evaluate {run} --checkpoint 7", "no checkpoint 7"),
        ("dragoman evaluate {run}-5", "not a run"),
        ("dragoman train {run}/config.toml --run {run}", "ends at once"),
        ("dragoman train {run}/config.toml --run {run} --set training.seed=5", "training.seed"),
        ("dragoman train {run}/other.toml", "no such recipe"),
    ],
)
def test_what_does_not_work_is_noticed(
    played: Callable[[Scenario], Any], command: str, why: str
) -> None:
    run = played(next(s for s in SCENARIOS if s.name == "constant straggler")).run

    (problem,) = problems(played, command.format(run=run.record.directory.root))
    assert why in problem


def test_what_is_no_advice_is_noticed(played: Callable[[Scenario], Any]) -> None:
    for text in ("Use bf16 on the wire.", "See the answer about the network."):
        assert problems(played, "training.seed = 7", text)


def test_more_than_three_are_noticed(played: Callable[[Scenario], Any]) -> None:
    run, _ = played(next(s for s in SCENARIOS if s.name == "constant straggler"))
    four = [Advice("Do it.", f"training.seed = {number}") for number in range(5, 9)]
    finding = Finding("yes", "high", "Yes.", (), four)

    assert len(unfollowable(run, {"network": finding})) == 1
    assert not unfollowable(run, {"network": replace(finding, advice=four[:3])})


def test_commands_that_are_made_for_a_run_can_be_followed(
    played: Callable[[Scenario], Any],
) -> None:
    run, _ = played(next(s for s in SCENARIOS if s.name == "constant straggler"))
    for command in (
        train_command(run, limits_beyond(run, 2 * len(run.steps))),
        train_command(run, {"training.tokens_per_update": 50_000}),
        train_command(run, {}, new_run=True),
    ):
        assert "--hosts" in shlex.split(command)
        assert problems(played, command) == []
