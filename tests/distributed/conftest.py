"""Programs of several ranks, played once and looked at by many tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from digits_language import RECIPE, write_digits
from processes import steps

from dragoman.config import parse_config
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptEnded, Event, Incident, StepDone
from dragoman.telemetry.read.events import read_events

TESTS = Path(__file__).parents[1]


class Played:
    """What came of the scenarios that so many ranks have played."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.folder, self.done = folder, done

    def seen(self, scenario: str) -> list[dict[str, Any]]:
        """By each rank, in their order."""
        files = sorted((self.folder / scenario).glob("seen-*.json"))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]

    def said(self, scenario: str, name: str = "") -> str:
        """The one sentence with which all ranks have stopped; rank 0 says it."""
        first, *others = [seen[name] if name else seen for seen in self.seen(scenario)]
        assert [other["error"] for other in others] == ["FailedElsewhereError"] * len(others)
        return first["says"]

    def run(self, scenario: str, name: str = "run") -> RunDir:
        return RunDir(self.folder / scenario / name)

    def steps(self, scenario: str, name: str = "run") -> dict[int, StepDone]:
        return steps(self.run(scenario, name).root)

    def incidents(self, scenario: str, name: str = "run") -> list[Incident]:
        """Of rank 0."""
        return [e for e in self._events(scenario, name) if isinstance(e, Incident)]

    def endings(self, scenario: str, name: str = "run") -> list[AttemptEnded]:
        """As rank 0 has recorded them."""
        return [e for e in self._events(scenario, name) if isinstance(e, AttemptEnded)]

    def _events(self, scenario: str, name: str) -> list[Event]:
        recorded = read_events(self.run(scenario, name), rank=0)
        return [each.stamped.event for each in recorded]


Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def on_ranks() -> Start:
    """Start a Python program as so many ranks of torchrun; one is alone, without a launcher."""

    def start(ranks: int, *command: object) -> subprocess.CompletedProcess[str]:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
        words = [*([] if ranks == 1 else launcher), *command]
        # What is tested may be a checkout other than the one that is installed.
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, *map(str, words)],
            env=os.environ
            | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )

    return start


@pytest.fixture(scope="session")
def play(tmp_path_factory, on_ranks: Start) -> Callable[..., Played]:
    """Play scenarios of scenarios.py as so many ranks."""
    base = tmp_path_factory.mktemp("scenarios")
    for name, pairs, seed in (("valid", 40, 2), ("test", 40, 3), ("train", 800, 9)):
        write_digits(base, name, pairs, seed)
    recipe = base / "digits.toml"
    recipe.write_text(RECIPE.format(folder=base), encoding="utf-8")
    text = recipe.read_text(encoding="utf-8")
    prepare(parse_config(text, "x", [f"data.prepared={base / 'other-prepared'}"]))
    write_digits(base, "train", 800, seed=1)
    prepare(parse_config(text, "x"))

    def played(ranks: int, *names: str, exit_code: int = 0) -> Played:
        folder = base / f"by-{ranks}"
        done = on_ranks(ranks, TESTS / "distributed" / "scenarios.py", recipe, folder, *names)
        played_through = all((folder / name / "seen-0.json").exists() for name in names[:-1])
        assert (done.returncode, played_through) == (exit_code, True), done.stdout + done.stderr
        return Played(folder, done)

    return played


@pytest.fixture(scope="session")
def one(play) -> Played:
    return play(1, "with_dropout", "optimizers")


@pytest.fixture(scope="session")
def two(play) -> Played:
    return play(
        *(2, "plain", "with_dropout", "signal", "nan", "out_of_memory", "single_pairs"),
        *("not_even_a_pair", "other_weights", "other_code", "no_data", "restore_elsewhere"),
        *(
            "roll_back_elsewhere",
            "memory_limit",
            "wire",
            "sharded",
            "sharded_fp16",
            "optimizers",
            "sharded_optimizers",
            "sharded_out_of_memory",
        ),
        exit_code=1,
    )


@pytest.fixture(scope="session")
def two_in_modes(play) -> Played:
    return play(2, "bf16", "local_steps", "local_not_finite", "local_hosts", "auto")


@pytest.fixture(scope="session")
def three_in_modes(play) -> Played:
    return play(3, "bf16", "host_islands")


@pytest.fixture(scope="session")
def three(play) -> Played:
    return play(
        *(3, "plain", "with_dropout", "out_of_memory", "other_weights", "other_seed"),
        *("other_data", "restore_elsewhere", "sharded", "wire"),
    )


@pytest.fixture(scope="session")
def four(play) -> Played:
    return play(4, "with_dropout", "wire")
