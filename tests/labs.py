"""Labs for tests, and programs that talk over their links.

    with lab(nodes=2, rate="100mbit") as it:
        subprocess.run(["ssh", "-F", it.ssh_config, "node1", "hostname"])

A test that uses it is skipped, with the reason, where a lab cannot be.
"""

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.lab import Lab, remove_lab
from dragoman.lab.kernel import check_machine

TALK = Path(__file__).parent / "lab" / "talk.py"
OWN_MACHINE = ["unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]

_started: dict[str, list[subprocess.Popen[str]]] = {}


def skip_without_lab() -> None:
    try:
        check_machine()
    except UserError as error:
        pytest.skip(str(error))


def new_name() -> str:
    return f"t-{secrets.token_hex(4)}"


@contextmanager
def lab(nodes: int = 2, rate: str = "none", **more: object) -> Iterator[Lab]:
    """Up under a name that no other test has, and down whatever happens."""
    skip_without_lab()
    name = new_name()
    try:
        yield Lab.up(name, nodes, rate, **more)
    finally:
        remove_lab(name)
        for process in _started.pop(name, []):
            with process:
                pass


def ssh(it: Lab, node: str, command: str) -> subprocess.CompletedProcess[str]:
    options = ["-F", str(it.ssh_config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    return subprocess.run(
        ["ssh", *options, node, command], capture_output=True, text=True, check=False
    )


def start(it: Lab, node: str, *command: object) -> subprocess.Popen[str]:
    """A process on the node, which does not outlive a lab of the context manager above."""
    words = [str(word) for word in command]
    process = subprocess.Popen(it.command(node, words), stdout=subprocess.PIPE, text=True)
    _started.setdefault(it.name, []).append(process)
    return process


def talk(it: Lab, node: str, *arguments: object) -> subprocess.Popen[str]:
    """One of the programs of `lab/talk.py` on the node."""
    return start(it, node, sys.executable, TALK, *arguments)


def on_own_machine(program: str) -> None:
    """Run `program` as Python on a machine of its own: no links, labs, mounts or processes but its.

    What all labs have in common is only there safe to be counted, compared and removed.
    """
    skip_without_lab()
    own = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && ip link set lo up"
    done = subprocess.run(
        [*OWN_MACHINE, "sh", "-c", f'{own} && exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Talk:
    """One connection over which `sender` counts aloud and `hearer` writes down what it hears."""

    def __init__(self, it: Lab, sender: str, hearer: str, port: int = 7000) -> None:
        self._heard = it.node(hearer).folder / f"heard-from-{sender}-{port}"
        address = it.node(hearer).address
        self.hearing = talk(it, hearer, "hear", address, port, self._heard)
        self.counting = talk(it, sender, "count", address, port)

    @property
    def heard(self) -> list[int]:
        return [int(line) for line in self._lines()]

    def _lines(self) -> list[bytes]:
        try:
            return self._heard.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []

    def is_whole(self) -> bool:
        """All that was said was heard, once and in order."""
        heard = self.heard
        return heard == list(range(len(heard)))
