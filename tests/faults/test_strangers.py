"""Somebody else on the machine can neither run code in a run, nor forge a heartbeat, nor be one."""

import os
import random
import signal
import socket
import subprocess
import sys
from ipaddress import ip_address

import pytest
from processes import ENDLESS, dragoman, losses, start_dragoman, wait_for_step
from strangers import listening, without_pickle, writing_pickles

from dragoman.cli.train import PREEMPTED

pytestmark = pytest.mark.timeout(240)


def store_port(pid: int) -> int:
    (port,) = [port for (_, port), name in listening(pid).items() if name == "dragoman-store"]
    return port


def test_workers_of_one_machine_listen_on_loopback_alone(digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    sockets = listening(process.pid)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=100)
    assert len(sockets) >= 3  # the store and gloo of each worker
    assert all(ip_address(address).is_loopback for address, _ in sockets), sockets


@pytest.mark.cluster
def test_pickles_in_every_key_of_the_store_and_noise_on_its_port_change_nothing(digits, tmp_path):
    run, marker = tmp_path / "run", tmp_path / "marker"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    port = store_port(process.pid)
    for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", random.Random(1).randbytes(10_000)):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(noise)
    stranger = subprocess.run(
        writing_pickles(port, marker, seconds=5), capture_output=True, text=True, check=False
    )
    assert stranger.returncode == 0, stranger.stderr
    assert int(stranger.stdout) > 2  # both heartbeats, and what the ranks have met with
    wait_for_step(run, max(losses(run)) + 20)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, errors
    assert not marker.exists()
    assert "was not signed with the secret of this start, and it is ignored" in errors
    assert "Traceback" not in errors


@pytest.mark.cluster
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_nothing_is_unpickled_in_a_launcher_an_agent_or_a_worker(digits, tmp_path, sharding):
    marker = tmp_path / "unpickled"
    assert dragoman("prepare", digits).returncode == 0  # its own processes talk over pipes
    variables = os.environ | {"OMP_NUM_THREADS": "1"} | without_pickle(tmp_path, marker)
    done = dragoman(
        *("train", digits, "--run", tmp_path / "run", "--workers", 2),
        *("--set", f"training.sharding={sharding}"),
        env=variables,
    )
    assert done.returncode == 0, done.stderr
    assert not marker.exists(), marker.read_text()
    # That such a thing would be seen:
    loads = "import pickle; pickle.loads(pickle.dumps(1))"
    subprocess.run([sys.executable, "-c", loads], env=variables, check=False, capture_output=True)
    assert marker.exists()
