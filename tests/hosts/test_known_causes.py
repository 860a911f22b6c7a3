"""What slows a run down on purpose appears where it belongs, in the parts of its steps.

Ranks are on nodes of a lab with real links; nothing is measured against this machine's speed, only
against what was put in.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from labs import lab
from processes import dragoman, start_dragoman, wait_for_step, wait_until

from dragoman.rundir import RunDir
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.read.reader import read_tables

pytestmark = pytest.mark.timeout(240)

FIRST_STEPS = 3
"""Left out: allocators and connections warm up."""
LARGER = [  # 1.3 million weights, so that a step is neither all start-up nor all arithmetic
    *("--set", "model.width=256", "--set", "model.filter=512", "--set", "model.heads=4"),
    *("--set", "evaluation.every_steps=100000", "--set", "checkpoints.every_steps=100000"),
    *("--set", "schedule.kind=constant", "--set", "training.micro_batch_tokens=150"),
]
ON_EVERY_STEP = """
import sys, time
if "train" in sys.orig_argv and "-m" in sys.orig_argv:
    from unittest.mock import patch
    from {module} import {owner}
    real = {owner}.{name}
    def slow(*inputs):
        time.sleep({seconds})
        return real(*inputs)
    patch.object({owner}, "{name}", slow).start()
"""


@pytest.fixture(scope="module")
def nodes():
    with lab(nodes=2) as it:
        yield it


def slowed_python(folder: Path, module: str, owner: str, name: str, seconds: float) -> str:
    """A Python whose training sleeps before each call of one method."""
    folder.mkdir()
    code = ON_EVERY_STEP.format(module=module, owner=owner, name=name, seconds=seconds)
    (folder / "sitecustomize.py").write_text(code)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)


class Parts:
    """Of every step, ranks x steps."""

    def __init__(self, run: Path) -> None:
        steps = read_tables(RunDir(run))[StepDone]
        by_rank = [own for _, _, own in steps.by_rank()]
        last = min(int(own["step"].max()) for own in by_rank)
        self.tables = [
            own.where((own["step"] > FIRST_STEPS) & (own["step"] <= last)) for own in by_rank
        ]
        self.step_s = np.stack([own["step_s"] for own in self.tables])
        self.ended_at = self.tables[0]["wall_at"]
        self.began_at = self.ended_at - self.step_s[0]
        network_s = self["communication"].min(axis=0)
        self.network_s = float(np.median(network_s))
        self.waiting_s = np.median(self["communication"] - network_s, axis=1)
        """For the other rank, by rank."""

    def __getitem__(self, part: str) -> np.ndarray:
        return np.stack([own.groups["parts_s"][part] for own in self.tables])

    def share(self, *names: str) -> float:
        return float(sum(self[name].sum() for name in names) / self.step_s.sum())

    def adds_up(self) -> bool:
        names = self.tables[0].groups["parts_s"]
        return bool(np.allclose(sum(self[name] for name in names), self.step_s, rtol=0.02))


def train(digits, run, hosts, steps, *more):
    done = dragoman(
        *("train", digits, "--run", run, "--hosts", hosts, "--skip-check", *LARGER),
        *("--set", f"training.steps={steps}", *more),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = Parts(run)
    assert parts.adds_up()
    return parts


def verdict(run: Path) -> str:
    printed = dragoman("report", run, "--json")
    answers = {answer["key"]: answer for answer in json.loads(printed.stdout)["answers"]}
    return str(answers["network"]["verdict"])


def test_a_slow_link_is_exposed_communication_as_long_as_its_bytes_take(
    digits, host_list, nodes, tmp_path
):
    nodes.rate("node1", "100mbit")
    nodes.rate("node2", "100mbit")
    try:
        parts = train(digits, tmp_path / "runs" / "slow", host_list(2), 15)
    finally:
        nodes.rate("node1", "none")
        nodes.rate("node2", "none")
    traffic = parts.tables[0].groups["traffic_bytes"]
    wire_s = 8 * float(traffic["predicted"][0]) / 100e6
    # Other work on the machine makes it longer, never shorter.
    assert 0.9 * wire_s < parts.network_s < 1.3 * wire_s
    assert np.median(traffic["sent"]) == pytest.approx(float(traffic["predicted"][0]), rel=0.1)
    assert verdict(tmp_path / "runs" / "slow") == "network-bound"


def test_a_rank_that_sleeps_is_a_straggler_and_not_the_network(digits, host_list, tmp_path):
    python = slowed_python(
        tmp_path / "slow", "dragoman.training.updater", "Updater", "gradients", 0.4
    )
    hosts = host_list(2, node2={"python": python})
    parts = train(digits, tmp_path / "runs" / "straggler", hosts, 15)
    # What the network took is in both; rank 1 comes last and waits for nobody.
    assert parts.waiting_s[1] < 0.1
    assert 0.36 < parts.waiting_s[0] < 0.6
    assert parts.network_s < 0.2
    assert verdict(tmp_path / "runs" / "straggler") == "straggler"


def test_data_that_comes_slowly_is_waiting_for_data(digits, host_list, tmp_path):
    python = slowed_python(tmp_path / "slow", "dragoman.batches.loader", "Loader", "_load", 1.0)
    hosts = host_list(2, node1={"python": python}, node2={"python": python})
    parts = train(digits, tmp_path / "runs" / "data", hosts, 10)
    assert 0.9 < np.median(parts.step_s) < 1.3
    assert parts.share("data") > 0.5
    assert parts.share("data") > 5 * parts.share("communication")
    assert verdict(tmp_path / "runs" / "data") == "input-bound"


def test_a_busy_processor_is_computing(digits, host_list, tmp_path):
    run = tmp_path / "runs" / "busy"
    process = start_dragoman(
        *("train", digits, "--run", run, "--hosts", host_list(2), "--skip-check", *LARGER),
        *("--set", "training.steps=100000", "--set", "training.tokens_per_update=800"),
    )
    others = []
    try:
        wait_for_step(run, FIRST_STEPS + 12)
        quiet_until = time.time()
        spin = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
        # So many that it shows on a machine that has other work as well; each in a session of its
        # own, since Linux shares processors out among sessions.
        for _ in range(8 * (os.cpu_count() or 1)):
            other = subprocess.Popen(spin, start_new_session=True, stdout=subprocess.PIPE)
            others.append(other)
        for other in others:
            other.stdout.readline()
        busy_from = time.time()
        # Records come home a little later than they are written, so steps are told by their times.
        wait_until(lambda: np.sum(Parts(run).began_at > busy_from) >= 10)
    finally:
        for other in others:
            other.kill()
            other.communicate()
        process.terminate()
        process.communicate(timeout=120)
    parts = Parts(run)
    computing_s = parts["forward"] + parts["backward"] + parts["optimizer"]
    before, beside = parts.ended_at < quiet_until, parts.began_at > busy_from
    assert np.median(computing_s[:, beside]) > 1.5 * np.median(computing_s[:, before])

    def grown_s(each_s: np.ndarray) -> float:
        return float(np.median(each_s[:, beside]) - np.median(each_s[:, before]))

    assert grown_s(computing_s) > 0.5 * grown_s(parts.step_s)
