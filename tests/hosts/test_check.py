"""`dragoman check` on a lab: what is broken there is found, named, and leaves nothing behind.

One run meets many faults at once, each on its own host; the others are short checks, which take
seconds.
"""

import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from labs import lab
from processes import dragoman, start_dragoman, wait_until

from dragoman.check.check import check_cluster
from dragoman.check.result import CheckResult, read_check
from dragoman.cluster.hosts import load_cluster
from dragoman.distributed.ring_bytes import on_the_wire
from dragoman.lab.kernel import run

pytestmark = pytest.mark.timeout(300)

RATE = 100e6 / 8
ON_THE_WIRE = on_the_wire(1.0, mtu=1500)
SITECUSTOMIZE = """
import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds)
"""
NO_PORTS = """
import socket
def bind(self, address):
    raise PermissionError(13, "Permission denied")
socket.socket.bind = bind
"""


@pytest.fixture(scope="module")
def nodes():
    with lab(nodes=4, rate="100mbit") as it:
        yield it


@pytest.fixture
def all_left(nodes, processes_of):
    """Waits until no host has a process of a check any more."""

    def wait() -> None:
        wait_until(lambda: not any(processes_of(node.name) for node in nodes.nodes), 20)

    return wait


def short(hosts: Path, **more: object) -> CheckResult:
    return check_cluster(load_cluster(str(hosts)), None, short=True, **more)


def found(result: CheckResult, subject: str) -> list:
    """What is not good about a subject."""
    return [f for f in result.findings if f.subject == subject and f.verdict != "good"]


def wrong(result: CheckResult) -> set[str]:
    """The subjects that are not good, without those that other programs on the machine of the test
    can make bad."""
    spoiled = {"load", "device"}
    return {f.subject for f in result.findings if f.verdict != "good"} - spoiled


def wrapper(path: Path, folder: Path, *more: str) -> str:
    """A Python that imports from `folder` first."""
    exports = "".join(f"export {words}\n" for words in (f"PYTHONPATH={folder}", *more))
    path.write_text(f'#!/bin/sh\n{exports}exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_healthy_cluster_is_fit_and_its_rates_are_those_of_the_lab(
    digits, host_list, all_left, tmp_path
):
    written, page = tmp_path / "check.json", tmp_path / "check.html"
    done = dragoman(
        *("check", digits, "--hosts", host_list(4), "--json", "--output", written, "--html", page),
        "--set",
        "training.tokens_per_update=3000",  # so that computing takes longer than this network
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = CheckResult.model_validate_json(done.stdout)
    assert result == read_check(written)
    assert "node4" in page.read_text()
    assert wrong(result) == set(), result.findings
    ways = {(t.sender, t.receiver) for t in result.transfers}
    assert len(ways) == len(result.transfers) == 12
    for rates in (
        [t.one_flow_bytes_per_s for t in result.transfers],
        [t.several_flows_bytes_per_s for t in result.transfers],
    ):
        assert statistics.median(rates) * ON_THE_WIRE == pytest.approx(RATE, rel=0.05), rates
        # Single ones may lose packets, or have to share a busy processor with other tests.
        assert all(r * ON_THE_WIRE == pytest.approx(RATE, rel=0.25) for r in rates), rates
    for host in result.hosts:
        assert host.gemm_flops_per_s
        assert host.disk_bytes_per_s
        assert host.clock_offset_s == pytest.approx(0.0, abs=0.5)
    all_left()


@pytest.fixture(scope="module")
def faketime():
    # The one for programs with threads.
    libraries = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("libfaketime is not installed; install it with: apt-get install faketime")
    return libraries[0]


def test_many_faults_at_once_are_told_apart(digits, host_list, nodes, faketime, tmp_path, all_left):
    assert dragoman("prepare", digits).returncode == 0
    other = ["--set", f"data.prepared={tmp_path}/node2/prepared/digits"]
    assert dragoman("prepare", digits, *other, "--set", "tokenizer.vocabulary=50").returncode == 0
    ahead = tmp_path / "ahead"
    (ahead / "torch-2.12.1.dist-info").mkdir(parents=True)
    (ahead / "torch-2.12.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.12.1\n"
    )
    (ahead / "sitecustomize.py").write_text(SITECUSTOMIZE)
    shifted = ("FAKETIME=+90", "FAKETIME_DONT_FAKE_MONOTONIC=1", f"LD_PRELOAD={faketime}")
    python = wrapper(tmp_path / "python", ahead, *shifted)
    burner = tmp_path / "burner"
    burner.symlink_to(sys.executable)
    # At a higher priority, so that no other work of this machine is busier.
    burning = subprocess.Popen(["nice", "-n", "-5", burner, "-c", "while True: pass"])
    nodes.disk("node1", 65_536)
    nodes.rate("node3", "10mbit", "send")
    try:
        hosts = host_list(
            4, node1={"folder": str(nodes.node("node1").folder)}, node4={"python": python}
        )
        done = dragoman("check", digits, "--hosts", hosts, "--json")
    finally:
        nodes.rate("node3", "100mbit", "send")
        nodes.disk("node1", None)
        burning.kill()
        burning.wait()
    assert done.returncode == 3, done.stdout + done.stderr
    result = CheckResult.model_validate_json(done.stdout)
    assert {f.hosts for f in found(result, "port")} == {("node3",)}
    assert found(result, "path") == []
    assert "sends at" in found(result, "port")[0].sentence
    assert "10 Mbit/s" in found(result, "port")[0].sentence
    assert {f.hosts for f in found(result, "data")} == {("node2",)}
    assert {f.hosts for f in found(result, "disk")} == {("node1",)}
    assert {f.hosts for f in found(result, "clock")} == {("node4",)}
    assert next(h for h in result.hosts if h.name == "node4").clock_offset_s == pytest.approx(
        90, abs=2
    )
    assert {f.hosts for f in found(result, "versions")} == {("node4",)}
    assert "2.12.1" in found(result, "versions")[0].sentence
    assert "burner" in found(result, "load")[0].sentence
    all_left()


def test_a_capped_port_is_named_by_a_short_check(host_list, nodes, all_left):
    nodes.rate("node2", "10mbit")
    try:
        result = short(host_list(4))
    finally:
        nodes.rate("node2", "100mbit")
    assert {f.hosts for f in found(result, "port")} == {("node2",)}
    assert found(result, "port")[0].verdict == "unfit"
    assert "10 Mbit/s" in found(result, "port")[0].sentence
    assert wrong(result) == {"port"}
    all_left()


def test_a_slow_receiver_behind_fast_senders(host_list, nodes):
    nodes.rate("node4", "10mbit", "receive")
    try:
        result = short(host_list(4))
    finally:
        nodes.rate("node4", "100mbit", "receive")
    (finding,) = found(result, "port")
    assert finding.hosts == ("node4",)
    assert "receives at" in finding.sentence


@pytest.fixture
def limit_pair(nodes):
    """Limits what one node sends to one other alone: limit_pair("node1", "node2", "10mbit")."""
    limited = []

    def limit(one: str, other: str, rate: str) -> None:
        limited.append(one)
        address = nodes.node(other).address
        for words in (
            "qdisc delete dev eth0 root",
            "qdisc add dev eth0 root handle 1: htb default 1",
            "class add dev eth0 parent 1: classid 1:1 htb rate 100mbit burst 50000",
            f"class add dev eth0 parent 1: classid 1:2 htb rate {rate} burst 5000",
            f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {address}/32 flowid 1:2",
        ):
            run(["tc", "-n", nodes.node(one).namespace, *words.split()])

    yield limit
    for name in limited:
        run(["tc", "-n", nodes.node(name).namespace, *["qdisc", "delete", "dev", "eth0", "root"]])
        nodes.rate(name, "100mbit")


def test_a_bad_pair_with_good_ports_is_the_path(host_list, limit_pair):
    limit_pair("node1", "node2", "10mbit")
    limit_pair("node2", "node1", "10mbit")
    result = short(host_list(4))
    (finding,) = found(result, "path")
    assert finding.hosts == ("node1", "node2")
    assert finding.verdict == "unfit"
    assert wrong(result) == {"path"}


def test_two_hosts_that_cannot_reach_each_other(host_list, nodes, all_left):
    nodes.partition("node1", "node2")
    try:
        result = short(host_list(4))
    finally:
        nodes.heal("node1", "node2")
    (finding,) = found(result, "path")
    assert finding.hosts == ("node1", "node2")
    assert len(result.transfers) == 6
    all_left()


def test_a_dead_host_is_named_and_the_others_are_checked(host_list, nodes):
    nodes.kill("node3")
    try:
        result = short(host_list(4))
    finally:
        nodes.boot("node3")
    assert not result.is_fit
    assert [f.hosts for f in found(result, "reach")] == [("node3",)]
    assert {h.name for h in result.hosts} == {"node1", "node2", "node4"}
    assert len(result.transfers) == 6


def test_a_host_that_hangs_in_the_tournament_is_named(host_list, nodes, all_left):
    def pause(text: str) -> None:
        if "round 2" in text:
            nodes.pause("node3")

    try:
        result = short(host_list(4), tell=pause)
    finally:
        nodes.resume("node3")
    assert [f.hosts for f in found(result, "reach")] == [("node3",)]
    assert found(result, "path") == []  # whoever was measured with it is not to blame
    ways = {(t.sender, t.receiver) for t in result.transfers}
    assert {("node1", "node2"), ("node2", "node1")} <= ways
    all_left()


def test_a_host_that_may_not_open_a_port(host_list, tmp_path):
    folder = tmp_path / "no_ports"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NO_PORTS)
    result = short(host_list(3, node2={"python": wrapper(tmp_path / "python", folder)}))
    (finding,) = [f for f in found(result, "port") if "Permission denied" in f.sentence]
    assert finding.hosts == ("node2",)
    assert {(t.sender, t.receiver) for t in result.transfers} >= {("node1", "node3")}


def test_a_killed_check_leaves_no_process_on_any_host(host_list, nodes, processes_of, all_left):
    process = start_dragoman("check", "--hosts", host_list(2))
    for line in process.stderr:
        if "round 2" in line:
            break
    assert processes_of("node1")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    all_left()


def test_an_interrupted_check_ends_at_once(host_list, all_left):
    def heed_interrupts() -> None:  # which whatever runs the tests may have had ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = start_dragoman("check", "--hosts", host_list(2), preexec_fn=heed_interrupts)
    for line in process.stderr:
        if "round 1" in line:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    all_left()


def test_hosts_that_nobody_knows(host_list):
    hosts = host_list(2, node1={"ssh_port": 2}, node2={"ssh_port": 2})
    done = dragoman("check", "--hosts", hosts)
    assert done.returncode == 2
    assert done.stderr.count("nothing listens on its ssh port") == 2
    assert "Traceback" not in done.stderr


def test_public_addresses_are_refused(host_list):
    done = dragoman("check", "--hosts", host_list(2, node2={"address": "8.8.8.8"}))
    assert done.returncode == 2
    assert "8.8.8.8" in done.stderr
