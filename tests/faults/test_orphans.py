"""Workers never outlive their agent, whenever it is killed, and a busy store is no lost host."""

import os
import signal
import time

import psutil
import pytest
from processes import ENDLESS, losses, start_dragoman, wait_for_step, wait_until, worker_processes

from dragoman.cli.train import PREEMPTED

pytestmark = pytest.mark.timeout(240)


def family(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def running(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def named(pid: int, what: str) -> list[psutil.Process]:
    return [p for p in family(pid) if what in " ".join(p.cmdline())]


@pytest.mark.parametrize(
    "moment",
    [
        "in a step",
        *(
            pytest.param(moment, marks=pytest.mark.cluster)
            for moment in (
                "before torch is imported",
                "when the workers are born",
                "while they meet",
            )
        ),
    ],
)
def test_an_agent_that_is_killed_leaves_no_worker_behind(digits, tmp_path, moment):
    run, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    variables = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS, env=variables)
    wait_until(lambda: named(process.pid, "dragoman.cluster.zygote"))
    if moment != "before torch is imported":
        wait_until(lambda: len(worker_processes(run)) == 2)
    if moment == "while they meet":
        time.sleep(0.5)
    if moment == "in a step":
        wait_for_step(run, 3)
    before = family(process.pid)
    (agent,) = named(process.pid, "dragoman.cluster.agent")
    agent.kill()
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "the agent of the workers was killed by SIGKILL; the same command resumes" in errors
    wait_until(lambda: not running(before))
    assert worker_processes(run) == []
    # torch keeps a cache there, under one name for all processes of a user.
    assert [p.name for p in temporary.iterdir() if not p.name.startswith("torchinductor")] == []


def test_a_signal_to_all_processes_at_once_is_for_the_workers_alone(digits, tmp_path):
    """Job systems send it so."""
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    everybody = [psutil.Process(process.pid), *family(process.pid)]
    for each in everybody:
        each.terminate()
    output, errors = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, output + errors
    wait_until(lambda: not running(everybody[1:]))


@pytest.mark.cluster
def test_a_reader_of_the_output_that_goes_away_ends_no_run(digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    wait_for_step(run, 2 * max(losses(run)) + 50)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=100) == PREEMPTED


@pytest.mark.cluster
def test_a_stopped_store_does_not_outlive_the_run(digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    everybody = family(process.pid)
    (store,) = [p for p in everybody if p.name() == "dragoman-store"]
    store.send_signal(signal.SIGSTOP)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
    process.communicate(timeout=100)
    wait_until(lambda: not running(everybody))


@pytest.mark.cluster
def test_a_store_that_is_slow_to_answer_on_one_machine_ends_no_run(digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    (store,) = [p for p in family(process.pid) if p.name() == "dragoman-store"]
    store.send_signal(signal.SIGSTOP)
    before = max(losses(run))
    time.sleep(12)  # longer than between hosts, where it would mean that the network is down
    store.send_signal(signal.SIGCONT)
    wait_for_step(run, before + 20)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, errors
    assert "down" not in errors
