"""The ways to close the network between hosts in docs/security.md, as the page says to do them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest
from labs import start, talk
from processes import ENDLESS, dragoman, start_dragoman, wait_for_step, wait_until

from dragoman.cli.train import PREEMPTED
from dragoman.rundir import RunDir, read_json

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
SNIFF = Path(__file__).parent / "sniff.py"
INTERFACE = "wg-dragoman"
WIREGUARD_PORT = 51820
CONNECTED_WITHIN_S = 10
"""WireGuard asks again after 5 s where its first handshake is lost."""
# The page's host -> the lab's; the lab's third node is the stranger.
NODES = {"gpu1": "node1", "gpu2": "node2"}
LAUNCHING = "203.0.113.5"


def block(language: str, containing: str) -> str:
    """The page's one block of code with this text."""
    found = [
        text
        for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        if containing in text
    ]
    assert len(found) == 1, f"{len(found)} blocks of {language} with {containing!r}"
    return found[0]


def for_lab(text: str, nodes) -> str:
    """The page's names and addresses replaced by those of the lab."""
    for number, (host, node) in enumerate(NODES.items(), 11):
        text = text.replace(f"10.0.0.{number}", str(nodes.node(node).address)).replace(host, node)
    return text.replace(LAUNCHING, str(nodes.layout.machine_address))


def need(packages: str, *tools: str) -> None:
    missing = [tool for tool in tools if not shutil.which(tool, path=f"{os.environ['PATH']}:/sbin")]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed; install with: apt-get install {packages}")


def on(nodes, node: str, *command: object) -> str:
    done = subprocess.run(
        nodes.command(node, [str(word) for word in command]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def sniffed(nodes, node: str):
    """Collects the flows that the node's plain interface carries meanwhile."""
    flows: set[tuple[str, str, str, int]] = set()
    process = subprocess.Popen(
        nodes.command(node, [sys.executable, str(SNIFF), "eth0"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == "sniffing\n"
        yield flows
        output, _ = process.communicate()
    found = json.loads(output)
    assert found["dropped"] == 0
    flows |= {tuple(flow[:4]) for flow in found["flows"]}


def listeners(nodes, node: str) -> set[tuple[str, str]]:
    """(program, address) of all that listens for TCP on the node."""
    lines = on(nodes, node, "ss", "--no-header", "-ltnp").splitlines()
    found = set()
    for line in lines:
        program = re.search(r'users:\(\("([^"]+)"', line)
        found.add((program[1] if program else "?", line.split()[3].rpartition(":")[0]))
    return found


def is_reached(nodes, by: str, address: str) -> bool:
    """Whether `by` can connect to what listens at the address of node1."""
    listening = talk(nodes, "node1", "swallow", address, 7000)
    wait_until(lambda: ":7000" in on(nodes, "node1", "ss", "--no-header", "-ltn"))
    place = address, 7000
    connect = f"import socket; socket.create_connection({place}, timeout={CONNECTED_WITHIN_S})"
    code = start(nodes, by, sys.executable, "-c", connect).wait()
    listening.kill()
    listening.wait()
    return code == 0


@pytest.fixture
def tunnel(nodes):
    """WireGuard on the first two nodes by the page's command; gone afterwards."""
    # wg-quick takes wireguard-go where the kernel has no WireGuard.
    need("wireguard-tools wireguard-go nftables", "wg", "wg-quick", "wireguard-go", "nft")
    for node in NODES.values():
        # Nodes have the machine's files: keys, and sockets named like the interface, are their own.
        on(nodes, node, "mkdir", "-p", "/run/wireguard")
        for folder in ("/etc/wireguard", "/run/wireguard"):
            on(nodes, node, "mount", "-t", "tmpfs", "tmpfs", folder)
    make_tunnel(nodes)
    yield
    for node in NODES.values():
        on(nodes, node, "wg-quick", "down", INTERFACE)
        for folder in ("/etc/wireguard", "/run/wireguard"):
            on(nodes, node, "umount", "--lazy", folder)


def make_tunnel(nodes) -> None:
    command = for_lab(block("sh", "wireguard.sh"), nodes)
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=os.environ | {"SSH": f"ssh -F {nodes.ssh_config}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "node1: 10.99.0.1\nnode2: 10.99.0.2\n"


@pytest.fixture
def addresses():
    """Name of a node -> its address in the page's host list."""
    hosts = tomllib.loads(block("toml", "10.99.0.1"))["hosts"]
    return {NODES[host["name"]]: host["address"] for host in hosts}


@pytest.fixture
def firewall(nodes, tmp_path):
    """The page's rules on the first two nodes; gone afterwards."""
    need("nftables", "nft")
    rules = tmp_path / "dragoman.nft"
    rules.write_text(for_lab(block("nft", "table inet dragoman"), nodes), encoding="utf-8")
    for node in NODES.values():
        on(nodes, node, "nft", "-f", rules)
    yield
    for node in NODES.values():
        on(nodes, node, "nft", "delete", "table", "inet", "dragoman")


def test_over_wireguard_nothing_but_the_tunnel_and_ssh_is_on_the_plain_network(
    digits, host_list, nodes, tunnel, addresses, tmp_path
):
    run = tmp_path / "runs" / "tunnel"
    hosts = host_list(2, **{node: {"address": address} for node, address in addresses.items()})
    command = ["train", digits, "--run", run, "--hosts", hosts]
    with sniffed(nodes, "node1") as flows:
        process = start_dragoman(*command, *ENDLESS)
        wait_for_step(run, 3)
        heard = {node: listeners(nodes, node) for node in addresses}
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=100)
        assert process.returncode == PREEMPTED, output + errors
        step = read_json(RunDir(run).status)["step"]
        done = dragoman(*command, "--set", f"training.steps={step + 5}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"node1: 1 worker(s), 10.99.0.1 on {INTERFACE}" in done.stdout

    here, there = (str(nodes.node(node).address) for node in addresses)
    machine = str(nodes.layout.machine_address)
    assert flows == {("udp", here, there, WIREGUARD_PORT), ("tcp", here, machine, 22)}

    for rank, (node, address) in enumerate(addresses.items()):
        assert (f"dragoman-{rank}", address) in heard[node]
        allowed = {address, "127.0.0.1", "[::1]"}
        outside = {listener for listener in heard[node] if listener[1] not in allowed}
        assert outside == {("sshd", str(nodes.node(node).address))}


def test_the_page_shows_the_configuration_that_the_first_host_gets(nodes, tunnel):
    config = on(nodes, "node1", "cat", f"/etc/wireguard/{INTERFACE}.conf")
    shown = re.sub("PublicKey = .*", "PublicKey = (of node2)", config)
    assert shown == for_lab(block("ini", "[Interface]"), nodes)


def test_a_stranger_on_the_plain_network_does_not_reach_the_address_of_the_tunnel(nodes, tunnel):
    # Linux takes a packet for any of its addresses from any interface, so this is a way in.
    on(nodes, "node3", "ip", "route", "replace", "10.99.0.1", "via", nodes.node("node1").address)
    assert is_reached(nodes, "node2", "10.99.0.1")
    assert not is_reached(nodes, "node3", "10.99.0.1")
    on(nodes, "node1", "nft", "flush", "table", "inet", INTERFACE)
    assert is_reached(nodes, "node3", "10.99.0.1")
    make_tunnel(nodes)
    assert is_reached(nodes, "node2", "10.99.0.1")
    assert not is_reached(nodes, "node3", "10.99.0.1")


def test_behind_the_firewall_hosts_train_and_a_stranger_reaches_nothing(
    digits, host_list, nodes, tmp_path, request
):
    address = str(nodes.node("node1").address)
    assert is_reached(nodes, "node3", address)
    request.getfixturevalue("firewall")
    assert is_reached(nodes, "node2", address)
    assert not is_reached(nodes, "node3", address)

    run = tmp_path / "runs" / "firewall"
    with sniffed(nodes, "node1") as flows:
        done = dragoman("train", digits, "--run", run, "--hosts", host_list(2))
    assert done.returncode == 0, done.stdout + done.stderr
    # Gradients travel in the open here, so the capture of the test above would have shown them.
    between = (address, str(nodes.node("node2").address))
    assert any(flow[0] == "tcp" and flow[1:3] == between and flow[3] > 1024 for flow in flows)
