"""With a real agent process, told what to do on its standard input."""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from dragoman.cluster import agent as agent_module
from dragoman.cluster.agent import Worker, check_forward, environment_of
from dragoman.cluster.job import Job
from dragoman.cluster.ssh import read_message
from dragoman.distributed.launchers import HOST_NAME
from dragoman.errors import UserError
from dragoman.rundir import RunDir


def agent(*lines):
    """What an agent that hears these lines says, as messages, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman.cluster.agent"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )
    messages = [read_message(line) for line in done.stdout.splitlines()]
    return [message for message in messages if message != {"alive": True}], done


def test_workers_of_a_host_start_in_its_folder_and_their_output_comes_home(tmp_path):
    files = {"recipes/x.toml": "name = 'x'"}
    run = RunDir(tmp_path / "runs" / "x")
    run.root.mkdir(parents=True)
    run.id.write_text("ab12\n")
    job = Job(["config", "recipes/x.toml"], 2, "s3cr3t", "start-1", first_rank=3, ranks=5)
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman.cluster.agent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        there = {"folder": str(tmp_path), "files": files, "relays": True}
        of_run = {"run": "runs/x", "run_id": "ab12", "environment": {HOST_NAME: "gpu1"}}
        process.stdin.write(Job(**(vars(job) | there | of_run)).to_line() + "\n")
        process.stdin.flush()
        said = []
        for line in process.stdout:
            said.append(read_message(line))
            if "ended" in said[-1]:
                break
        process.stdin.close()
    assert (tmp_path / "recipes" / "x.toml").read_text() == files["recipes/x.toml"]
    assert said[-1] == {"ended": 2, "start": "start-1"}, "the recipe lacks all but its name"
    ranks = {message["rank"] for message in said if "error: " in message.get("line", "")}
    assert ranks <= {3, 4}
    assert ranks
    (log,) = run.logs.iterdir()
    assert log.name.startswith("gpu1-agent-")
    kept = log.read_text()
    assert "starting rank 3, rank 4: dragoman config recipes/x.toml" in kept
    (rank, *_) = ranks
    assert f"rank {rank} | error: recipes/x.toml" in kept
    assert f"rank {rank} ended, code 2" in kept
    brought = [message for message in said if message.get("record") == f"logs/{log.name}"]
    assert "".join(message["text"] for message in brought) == kept, "it came home before the end"


def test_no_log_is_left_in_the_folder_of_another_run(tmp_path):
    run = RunDir(tmp_path / "runs" / "x")
    run.root.mkdir(parents=True)
    run.id.write_text("cd34\n")
    job = Job(["no-such-command"], 1, "s", folder=str(tmp_path), relays=True)
    agent(Job(**(vars(job) | {"run": "runs/x", "run_id": "ab12"})).to_line())
    assert [path.name for path in run.root.iterdir()] == ["run-id"]


def test_a_folder_that_cannot_be_entered_is_told_home(tmp_path):
    (tmp_path / "file").touch()
    messages, _ = agent(
        Job([], 1, "s", "start-1", folder=str(tmp_path / "file"), relays=True).to_line()
    )
    assert str(tmp_path / "file") in messages[0]["error"]
    assert messages[-1] == {"ended": 1, "start": "start-1"}


def test_an_agent_without_work_ends_with_whoever_started_it():
    messages, done = agent("alive", "stop: asked to")
    assert (messages, done.returncode, done.stderr) == ([], 0, "")


def test_a_worker_that_is_stopped_is_noticed_and_one_that_has_ended_gets_no_signal():
    process = subprocess.Popen(["sleep", "1000"])
    with process:
        worker = Worker(0, process.pid)
        assert not worker.is_stopped()
        worker.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert worker.is_stopped()
        worker.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    worker.code = -9
    worker.signal(signal.SIGKILL)
    assert not worker.is_running
    assert not Worker(1).is_running, "it has not been forked yet"


def test_what_the_user_has_set_and_what_the_job_says_wins(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = psutil.cpu_count(logical=False) or 1
    job = Job([], cores, "", environment={"X": "job"})
    monkeypatch.setenv("X", "user")
    assert environment_of(job)["OMP_NUM_THREADS"] == "1"
    assert environment_of(job)["X"] == "job"
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert environment_of(job)["OMP_NUM_THREADS"] == "7"


def test_workers_share_the_cores_that_they_may_use(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(agent_module, "usable_cores", lambda: 4)
    assert environment_of(Job([], 2, ""))["OMP_NUM_THREADS"] == "2"


def test_a_forwarded_port_that_is_open_to_the_network_is_refused():
    outside = [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == socket.AF_INET and not address.address.startswith("127.")
    ]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        check_forward(listening.getsockname()[1])
    if not outside:
        pytest.skip("this machine has no address but loopback")
    with (
        socket.create_server((outside[0], 0)) as listening,
        pytest.raises(UserError, match=rf"{outside[0]}.*GatewayPorts"),
    ):
        check_forward(listening.getsockname()[1])
