"""One lab of three nodes for the tests of a module."""

import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
from labs import lab

from dragoman.errors import UserError


@pytest.fixture(scope="module")
def nodes():
    with lab(nodes=3) as it:
        yield it


@pytest.fixture
def host_list(nodes, tmp_path):
    """Writes a host list of the first nodes, with changes: host_list(2, node2={"python": ...})."""

    def write(count: int, ssh_config: Path | None = None, top: dict | None = None, **changes):
        hosts = []
        for number in range(1, count + 1):
            node = nodes.node(f"node{number}")
            keys = {
                "name": node.name,
                "address": str(node.address),
                "folder": str(tmp_path / node.name),
                "python": sys.executable,
                "devices": 1,
            } | changes.get(node.name, {})
            hosts.append({key: value for key, value in keys.items() if value is not None})
        path = tmp_path / "hosts.toml"
        config = str(ssh_config or nodes.ssh_config)
        path.write_text(tomli_w.dumps({"ssh_config": config, **(top or {}), "hosts": hosts}))
        return path

    return write


@pytest.fixture
def processes_of(nodes):
    """Dragoman's processes in a node, found by its network: pid -> command line."""

    def find(node: str) -> dict[int, str]:
        try:
            command = nodes.command(node, ["readlink", "/proc/self/ns/net"])
        except UserError:
            return {}  # the node itself is not running
        inode = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if str((process / "ns" / "net").readlink()) == inode:
                    words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(process.name)] = words.decode(errors="replace").strip()
            except OSError:
                continue  # it has ended meanwhile
        return {pid: s for pid, s in found.items() if "dragoman" in s and "sshd" not in s}

    return find
