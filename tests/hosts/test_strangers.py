"""Somebody on the network between hosts finds no store, and nobody on a host can forge one."""

import re
import signal
import subprocess
from ipaddress import ip_address

import pytest
from processes import ENDLESS, losses, start_dragoman, wait_for_step
from strangers import listening, writing_pickles

from dragoman.cli.train import PREEMPTED

pytestmark = pytest.mark.timeout(240)


def sockets(nodes, node: str) -> dict[tuple[str, int], str]:
    """(address, port) -> name of the process, of all that listen on the node."""
    command = nodes.command(node, ["ss", "-Hltnp"])
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pattern = r'LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)\s.*?\(\("([^"]+)"'
    return {(address, int(port)): name for address, port, name in re.findall(pattern, shown)}


def test_no_store_is_open_to_the_network_and_pickles_in_it_change_nothing(
    digits, host_list, nodes, tmp_path
):
    run, marker = tmp_path / "runs" / "strange", tmp_path / "marker"
    process = start_dragoman("train", digits, "--run", run, "--hosts", host_list(2), *ENDLESS)
    wait_for_step(run, 3)

    for address, _ in listening(process.pid):
        assert ip_address(address).is_loopback  # where the run was started
    for node in ("node1", "node2"):
        own = str(nodes.node(node).address)
        on_network = {name for (address, _), name in sockets(nodes, node).items() if address == own}
        assert {address for address, _ in sockets(nodes, node)} == {"127.0.0.1", own}
        assert on_network == {"sshd", f"dragoman-{int(node[-1]) - 1}"}  # the latter is gloo's

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
