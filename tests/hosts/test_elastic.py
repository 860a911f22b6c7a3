"""Hosts that are lost and come back: the run goes on with the others, and takes them in again."""

import os
import re
import signal
import subprocess
import sys

import psutil
import pytest
from processes import ENDLESS, losses, start_dragoman, wait_for_step, wait_until

from dragoman.cli.train import PREEMPTED
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import AttemptStarted, StepDone
from dragoman.telemetry.read.events import read_events

ALL = ("node1", "node2", "node3")

pytestmark = pytest.mark.timeout(300)


def attempts(run):
    """Attempt -> hosts that took part in it."""
    found = {}
    for recorded in read_events(RunDir(run)):
        if isinstance(recorded.stamped.event, AttemptStarted):
            found.setdefault(recorded.attempt, set()).add(recorded.stamped.event.host)
    return found


def test_the_first_host_is_lost_and_comes_back(digits, host_list, processes_of, nodes, tmp_path):
    run = tmp_path / "runs" / "elastic"
    process = start_dragoman(
        *("train", digits, "--run", run, "--hosts", host_list(3, top={"min_hosts": 2})),
        *("--set", "training.micro_batch_tokens=150", *ENDLESS),
    )
    try:
        wait_for_step(run, 20)
        nodes.kill("node1")  # where the others met, and which kept the checkpoints
        wait_until(lambda: {"node2", "node3"} in attempts(run).values())
        wait_for_step(run, max(losses(run)) + 10)
        nodes.boot("node1")
        wait_until(lambda: list(attempts(run).values()).count({*ALL}) == 2)
        wait_for_step(run, max(losses(run)) + 10)
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == PREEMPTED, output + errors
    assert "Traceback" not in output + errors
    assert "starting again with node2, node3: the global batch stays the same" in output
    assert "node1 is back; the run pauses to include it" in output
    # Not from the start: every host keeps its own copy of each checkpoint.
    begun = [
        recorded.stamped.event.first_step
        for recorded in read_events(RunDir(run), rank=0)
        if isinstance(recorded.stamped.event, AttemptStarted)
    ]
    assert begun[0] == 1
    assert 5 < begun[1] <= begun[2]
    # Of any rank: what rank 0 had not sent home yet was lost with its host.
    steps = {
        recorded.stamped.event.step
        for recorded in read_events(RunDir(run))
        if isinstance(recorded.stamped.event, StepDone)
    }
    assert sorted(steps) == list(range(1, max(steps) + 1))
    members = [a["members"] for a in read_json(RunDir(run).manifest)["attempts"]]
    assert [len(hosts) for hosts in members] == [3, 2, 3]
    assert not any(processes_of(node) for node in ALL)


def test_nobody_waits_for_a_rank_that_is_stopped(digits, host_list, processes_of, tmp_path):
    run = tmp_path / "runs" / "stopped"
    # What a host that has not failed gets for its last words: here it would outlast the test.
    patient = "import dragoman.cluster.supervise as s; s.FAREWELL_S = 1e6; s.SILENCE_S = 1e6\n"
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", patient + "from dragoman.cli import main; main()"),
            *("train", digits, "--run", run, "--hosts", host_list(2, top={"min_hosts": 2})),
            *ENDLESS,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for_step(run, 20)
        (worker,) = [
            pid for pid in processes_of("node2") if psutil.Process(pid).name() == "dragoman-1"
        ]
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: len(attempts(run)) == 2)
        wait_for_step(run, max(losses(run)) + 10)
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == PREEMPTED, output
    assert re.search(r"rank 1 on node2 was stopped for 5 s, and ended: it was in", output), output
    assert "out of memory" not in output  # we have ended it ourselves
