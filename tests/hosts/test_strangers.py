"""Somebody on the network between hosts finds no store, and nobody on a host can forge one."""

import re
import signal
import subprocess
import sys
from ipaddress import ip_address

import pytest
from processes import ENDLESS, losses, start_dragoman, wait_for_step
from strangers import listening, writing_pickles

from dragoman.cli.train import PREEMPTED

pytestmark = pytest.mark.timeout(240)

# What gloo says to whoever connects is not ours; the store would answer a question for its keys.
IS_STORE = """
import sys
from datetime import timedelta
from torch._C._distributed_c10d import TCPStore
soon = timedelta(seconds=2)
try:
    TCPStore(sys.argv[1], int(sys.argv[2]), is_master=False, timeout=soon).list_keys()
except RuntimeError:
    sys.exit(1)
"""


def sockets(nodes, node: str) -> set[tuple[str, int]]:
    """(address, port) of all that listen on the node, but for its sshd."""
    command = nodes.command(node, ["ss", "-Hltn"])
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {re.match(r"\S+\s+\d+\s+\d+\s+(\S+):(\d+)", line) for line in shown.splitlines()}
    return {(match[1].strip("[]"), int(match[2])) for match in found if match[2] != "22"}


def test_no_store_is_open_to_the_network_and_pickles_in_it_change_nothing(
    digits, host_list, nodes, tmp_path
):
    run, marker = tmp_path / "runs" / "strange", tmp_path / "marker"
    process = start_dragoman("train", digits, "--run", run, "--hosts", host_list(2), *ENDLESS)
    wait_for_step(run, 3)

    for address, _ in listening(process.pid):
        assert ip_address(address).is_loopback  # where the run was started
    private = {node: str(nodes.node(node).address) for node in ("node1", "node2")}
    for node, own in private.items():
        addresses = {address for address, _ in sockets(nodes, node)}
        assert addresses == {"127.0.0.1", own}  # ssh's forward to the store, and gloo
        for address, port in sockets(nodes, node):
            asked = nodes.command("node3", [sys.executable, "-c", IS_STORE, own, str(port)])
            answer = subprocess.run(asked, capture_output=True, check=False)
            assert answer.returncode == 1, (address, port)

    (port,) = [port for address, port in sockets(nodes, "node2") if address == "127.0.0.1"]
    stranger = subprocess.run(
        nodes.command("node2", writing_pickles(port, marker, seconds=3)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert stranger.returncode == 0, stranger.stderr
    assert int(stranger.stdout) > 2
    wait_for_step(run, max(losses(run)) + 20)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, output + errors
    assert not marker.exists()
    assert "was not signed with the secret of this start" in output + errors
