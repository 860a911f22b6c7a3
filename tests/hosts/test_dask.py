"""Preparation on a Dask cluster whose scheduler and workers are on hosts of their own."""

import shutil
import sys

import pytest
from labs import start
from processes import dragoman, sentence, wait_until

pytestmark = pytest.mark.timeout(240)


def shards(folder):
    return {path.name: path.read_bytes() for path in folder.glob("shards-*/*.npy")}


@pytest.fixture
def expected(digits, tmp_path):
    """Prepared on this machine alone."""
    place = tmp_path / "alone"
    done = dragoman("prepare", digits, "--set", f"data.prepared={place}")
    assert done.returncode == 0, done.stderr
    return shards(place)


def test_a_scheduler_with_workers_on_hosts_gives_the_same_bytes(nodes, digits, tmp_path, expected):
    dask = sys.executable, "-m"
    address = f"tcp://{nodes.node('node1').address}:8786"
    host = str(nodes.node("node1").address)
    start(nodes, "node1", *dask, "distributed.cli.dask_scheduler", "--host", host, "--no-dashboard")
    for node in ("node1", "node2", "node3"):
        words = ["--nthreads", 1, "--no-dashboard", "--local-directory", tmp_path / node]
        start(nodes, node, *dask, "distributed.cli.dask_worker", address, *words)
    place = tmp_path / "by-dask"
    done = dragoman("prepare", digits, "--dask", address, "--set", f"data.prepared={place}")
    assert done.returncode == 0, done.stderr
    assert "Dask workers with" in done.stdout
    assert shards(place) == expected


def test_a_cluster_is_started_over_ssh_and_leaves_nothing_behind(
    host_list, digits, tmp_path, expected, processes_of
):
    place = tmp_path / "by-ssh"
    hosts = host_list(3)
    done = dragoman("prepare", digits, "--dask", f"ssh:{hosts}", "--set", f"data.prepared={place}")
    assert done.returncode == 0, done.stderr
    assert shards(place) == expected
    for node in ("node2", "node3"):
        wait_until(lambda n=node: not [s for s in processes_of(n).values() if "dask_host" in s])


def test_a_host_that_cannot_be_reached_is_named(host_list, digits, tmp_path):
    hosts = host_list(2, node2={"ssh_port": 1})
    done = dragoman("prepare", digits, "--dask", f"ssh:{hosts}")
    assert "node2: nothing listens on its ssh port" in sentence(done, 2)
    shutil.rmtree(tmp_path / "prepared", ignore_errors=True)
