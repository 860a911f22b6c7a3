"""Runs commands and reads what the kernel knows: namespaces, links, bytes, processes, mounts."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from dragoman.errors import RunError, UserError, storage_errors
from dragoman.lab.layout import LABS, NAMESPACES

# Debian's names of the packages.
TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "umount": "mount",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
# Where these tools are, though not on every user's PATH.
SYSTEM_PATH = "/usr/sbin:/sbin"
GONE_WITHIN_S = 10.0
# How mountinfo writes spaces and the like.
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Process:
    pid: int
    state: str
    """One letter, as in ps: R, S, D, T for stopped."""
    command: str


def check_machine() -> None:
    """Refuses a machine that cannot run a lab."""
    if sys.platform != "linux":
        raise UserError("dragoman lab needs Linux: no other system has network namespaces")
    if os.geteuid() != 0:
        raise UserError(
            "dragoman lab needs root to create network namespaces; run it as "
            f"sudo {sys.executable} -m dragoman lab ..."
        )
    missing = {tool: package for tool, package in TOOLS.items() if not found_tool(tool)}
    if missing:
        raise UserError(
            f"dragoman lab needs {', '.join(missing)}, which this machine does not have; install "
            f"with: apt-get install {' '.join(dict.fromkeys(missing.values()))}"
        )


def found_tool(name: str) -> str | None:
    """Returns the absolute path of a tool; None if it is not installed."""
    return shutil.which(name, path=environment()["PATH"])


def run(command: list[str]) -> str:
    """Returns the command's output; raises RunError with its error output."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        stdin=subprocess.DEVNULL,
    )
    if done.returncode == 0:
        return done.stdout
    errors = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
    hint = ""
    if "not permitted" in errors or "Permission denied" in errors:
        hint = "; in a container, a lab needs one that was started with --privileged"
    raise RunError(f"`{' '.join(command)}` failed: {errors}{hint}")


def run_all(commands: Iterable[list[str]]) -> None:
    for command in commands:
        run(command)


def read_json(command: list[str]) -> list[dict[str, Any]]:
    printed = run(command)
    # With nothing to show, some releases of iproute2 print nothing at all.
    return [entry for entry in json.loads(printed or "[]") if entry]


def environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}"}


def namespaces() -> list[str]:
    try:
        return sorted(path.name for path in NAMESPACES.iterdir())
    except OSError:
        return []


def links() -> list[str]:
    return [entry["ifname"] for entry in read_json(["ip", "-json", "link", "show"])]


def networks_in_use() -> list[IPv4Network]:
    """Returns all networks with an address or a route, except the default route."""
    routes = read_json(["ip", "-json", "-4", "route", "show", "table", "all"])
    found = [IPv4Network(r["dst"], strict=False) for r in routes if r["dst"] != "default"]
    # Some VPN clients write a default route as two halves.
    return [network for network in found if network.prefixlen > 4]


def processes(namespace: str) -> list[Process]:
    """Returns the processes in this network namespace."""
    try:
        wanted = (NAMESPACES / namespace).stat()
    except OSError:
        return []
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is a zombie
            network = (folder / "ns" / "net").stat()
            if (network.st_dev, network.st_ino) == (wanted.st_dev, wanted.st_ino):
                found.append(_process(folder))
    return sorted(found, key=lambda process: process.pid)


def end_processes(namespace: str) -> None:
    """Sends SIGKILL until none is left: one may have started another meanwhile."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while running := processes(namespace):
        if time.monotonic() > deadline:
            raise RunError(
                f"process {running[0].pid} ({running[0].command}) does not end; it waits for the "
                "kernel, so try again in a while"
            )
        send_signal(running, signal.SIGKILL)
        time.sleep(0.01)


def stop_processes(namespace: str) -> None:
    """Sends SIGSTOP until all are stopped."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while moving := [process for process in processes(namespace) if process.state != "T"]:
        if time.monotonic() > deadline:
            raise RunError(
                f"process {moving[0].pid} ({moving[0].command}) does not stop; it waits for the "
                "kernel, so try again in a while"
            )
        send_signal(moving, signal.SIGSTOP)
        time.sleep(0.01)


def send_signal(targets: Iterable[Process], number: signal.Signals) -> None:
    for process in targets:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def mounts_below(folder: Path) -> list[Path]:
    """Returns the mount points at or below `folder`, the last mounted first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        place = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), line.split(" ")[4]))
        if place.is_relative_to(folder):
            found.append(place)
    return found[::-1]


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Locks the folder of all labs, so that two never choose the same network or name.

    It is removed when empty; a process that waited for it then locks the new one.
    """
    while True:
        with storage_errors(LABS, "making the folder of labs"):
            LABS.mkdir(parents=True, exist_ok=True)
            LABS.chmod(0o755)
            descriptor = os.open(LABS, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_same(descriptor, LABS):
                continue
            try:
                yield
            finally:
                with suppress(OSError):
                    LABS.rmdir()
            return
        finally:
            os.close(descriptor)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _process(folder: Path) -> Process:
    # The name of a program may hold anything, also spaces and parentheses.
    state = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return Process(int(folder.name), state.split()[0], words)
