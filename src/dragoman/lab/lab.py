"""A lab while it is up: a description comes in, running hosts go out, to be broken and healed."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from types import TracebackType

from dragoman.errors import CorruptFileError, RunError, UserError, storage_errors
from dragoman.lab import commands, kernel
from dragoman.lab.layout import (
    DISK,
    LABS,
    MAX_NODES,
    Layout,
    Node,
    check_name,
    etc_files,
    folder_of,
    free_network,
    hosts_toml,
    known_hosts,
    labs_among,
    link_of,
    namespaces_of,
    ssh_config,
    sshd_config,
)
from dragoman.lab.rates import Direction, parse_rate
from dragoman.lab.status import NodeStatus, partitioned_from, status
from dragoman.rundir import read_json, write_json, write_whole

BOOTED_WITHIN_S = 20.0


@dataclass(frozen=True)
class Lab:
    """Created by `up` or found by `open`; as a context manager it is down afterwards."""

    layout: Layout

    @classmethod
    def up(
        cls,
        name: str = "lab",
        nodes: int = 2,
        rate: str = "none",
        node_rates: Mapping[int, str] | None = None,
    ) -> "Lab":
        """Creates `nodes` hosts, linked at `rate` or at their `node_rates`, counted from 1."""
        check_name(name)
        if not 1 <= nodes <= MAX_NODES:
            raise UserError(f"a lab has 1 to {MAX_NODES} nodes, not {nodes}")
        rates = dict.fromkeys(range(1, nodes + 1), parse_rate(rate))
        for number, text in (node_rates or {}).items():
            if number not in rates:
                raise UserError(f"node {number} has a rate, but there are {nodes} nodes")
            rates[number] = parse_rate(text)
        kernel.check_machine()
        with kernel.one_at_a_time():
            refuse_existing(name)
            layout = Layout(name, free_network(kernel.networks_in_use()), nodes, _user())
            try:
                _make(layout, rates)
            except BaseException:
                _remove(name)
                raise
        return cls(layout)

    @classmethod
    def open(cls, name: str = "lab") -> "Lab":
        """Opens a lab that is up."""
        kernel.check_machine()
        known = lab_names()
        if check_name(name) not in known:
            others = f", or choose with --name from: {', '.join(sorted(known))}" if known else ""
            raise UserError(f"lab {name} is not up; create it with: dragoman lab up{others}")
        try:
            state = read_json(folder_of(name) / "lab.json")
            layout = Layout(
                name, IPv4Network(state["network"]), int(state["nodes"]), str(state["user"])
            )
        except (CorruptFileError, KeyError, ValueError, TypeError) as error:
            raise _left_over(name) from error
        # A restart of the machine leaves only the files.
        if layout.switch not in kernel.namespaces():
            raise _left_over(name)
        return cls(layout)

    def __enter__(self) -> "Lab":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.down()

    @property
    def name(self) -> str:
        return self.layout.name

    @property
    def folder(self) -> Path:
        return self.layout.folder

    @property
    def hosts(self) -> Path:
        """The host list, for `--hosts`."""
        return self.layout.hosts

    @property
    def ssh_config(self) -> Path:
        """The configuration for `ssh -F`."""
        return self.layout.ssh_config

    @property
    def nodes(self) -> list[Node]:
        return self.layout.nodes

    def node(self, name: str) -> Node:
        return self.layout.node(name)

    def rate(self, name: str, rate: str, direction: Direction = "both") -> None:
        """Limits what the node sends, receives or both, even while traffic flows."""
        kernel.run_all(commands.limit(self.layout, self.node(name), parse_rate(rate), direction))

    def cut(self, name: str) -> None:
        """Unplugs the node: connections are not reset, they fall silent."""
        kernel.run(commands.connect(self.layout, self.node(name), is_up=False))

    def partition(self, one: str, other: str) -> None:
        """Cuts two nodes off from each other; both still reach all others."""
        first, second = self._pair(one, other)
        kernel.run_all([commands.block(first, second), commands.block(second, first)])

    def heal(self, name: str, other: str | None = None) -> None:
        """Undoes `cut` and every `partition` of the node, or only the one from `other`."""
        node = self.node(name)
        others = [self._pair(name, other)[1]] if other else self.nodes
        for one in others:
            if one.address in partitioned_from(node):
                kernel.run(commands.unblock(node, one))
            if node.address in partitioned_from(one):
                kernel.run(commands.unblock(one, node))
        if other is None:
            kernel.run(commands.connect(self.layout, node, is_up=True))

    def boot(self, name: str) -> None:
        """Starts a node that was killed."""
        node = self.node(name)
        if _sshd(node):
            raise UserError(
                f"{node.name} is already running; `dragoman lab kill {node.name}` ends it"
            )
        _boot(self.layout, node)

    def kill(self, name: str) -> None:
        """Kills all processes of the node with SIGKILL, its sshd included."""
        kernel.end_processes(self.node(name).namespace)

    def pause(self, name: str) -> None:
        """Stops all processes of the node; to the others it hangs."""
        kernel.stop_processes(self.node(name).namespace)

    def resume(self, name: str) -> None:
        kernel.send_signal(kernel.processes(self.node(name).namespace), signal.SIGCONT)

    def disk(self, name: str, size_bytes: int | None) -> Path:
        """Mounts a file system of that size, in memory, for the node's runs; None removes it."""
        place = self.node(name).folder / DISK
        is_mounted = place in kernel.mounts_below(place)
        if size_bytes is None:
            if is_mounted:
                kernel.run(["umount", "--lazy", str(place)])
        elif is_mounted:
            kernel.run(commands.resize_disk(place, size_bytes))
        else:
            if place.exists() and any(place.iterdir()):
                raise UserError(f"{place}: holds files, which a disk would hide; move them first")
            place.mkdir(exist_ok=True)
            kernel.run(commands.mount_disk(place, size_bytes, pwd.getpwnam(self.layout.user)))
        return place

    def status(self, over_s: float = 1.0) -> list[NodeStatus]:
        """Returns the state of each node; speeds are means over the next `over_s` seconds."""
        return status(self.layout, over_s)

    def command(self, name: str, command: list[str]) -> list[str]:
        """Returns the command that runs `command` on the node, in its working folder."""
        node = self.node(name)
        sshd = _sshd(node)
        if not sshd:
            raise UserError(f"{node.name} is not running; start it with: dragoman lab boot {name}")
        return commands.enter(node, sshd, pwd.getpwnam(self.layout.user), command)

    def exec(self, name: str, command: list[str]) -> int:
        """Runs `command` on the node; returns its exit code, above 128 if a signal ended it."""
        code = subprocess.run(self.command(name, command), check=False).returncode
        return code if code >= 0 else 128 - code

    def down(self) -> None:
        remove_lab(self.name)

    def _pair(self, one: str, other: str) -> tuple[Node, Node]:
        first, second = self.node(one), self.node(other)
        if first == second:
            raise UserError(f"{first.name} cannot be partitioned from itself; name two nodes")
        return first, second


def lab_names() -> set[str]:
    """Returns the names of all labs that anything is left of."""
    try:
        folders = [path.name for path in LABS.iterdir()]
    except FileNotFoundError:
        folders = []
    return labs_among(kernel.namespaces(), kernel.links(), folders)


def refuse_existing(name: str) -> None:
    kernel.check_machine()
    if check_name(name) in lab_names():
        raise UserError(
            f"lab {name} is already up; take it down with `dragoman lab down --name {name}`, or "
            "give another --name"
        )


def remove_lab(name: str) -> None:
    """Ends its processes and removes everything with its name, whatever state it is in."""
    kernel.check_machine()
    with kernel.one_at_a_time():
        _remove(check_name(name))


def _remove(name: str) -> None:
    namespaces = namespaces_of(name, kernel.namespaces())
    for namespace in namespaces:
        kernel.end_processes(namespace)
    for place in kernel.mounts_below(folder_of(name)):
        # Lazily: a process of the machine may still be using it.
        kernel.run(["umount", "--lazy", str(place)])
    # By name: the kernel removes a namespace, and the other end of this link, only later.
    if link_of(name) in kernel.links():
        kernel.run(["ip", "link", "delete", link_of(name)])
    for namespace in namespaces:
        kernel.run(["ip", "netns", "delete", namespace])
    folder = folder_of(name)
    while folder.exists():  # a process of the machine may be removing files there as well
        with storage_errors(folder, "removing the lab"), suppress(FileNotFoundError):
            shutil.rmtree(folder)


def _make(layout: Layout, rates: Mapping[int, int]) -> None:
    _write_files(layout)
    has_ipv6 = Path("/proc/net/if_inet6").exists()
    kernel.run_all(commands.share_mounts(layout.folder))
    kernel.run_all(commands.make_switch(layout, has_ipv6))
    for number, node in enumerate(layout.nodes, 1):
        kernel.run_all(commands.make_node(layout, node, rates[number], has_ipv6))
        _boot(layout, node)
    state = {"network": str(layout.network), "nodes": layout.count, "user": layout.user}
    write_json(layout.state, state)


def _write_files(layout: Layout) -> None:
    account = pwd.getpwnam(layout.user)
    _make_folder(layout.folder)
    _make_folder(layout.system)
    kernel.run(commands.make_key(layout.key, f"dragoman lab {layout.name}"))
    public = layout.key.with_suffix(".pub")
    write_whole(layout.authorized_keys, public.read_bytes())
    for path in (layout.key, public):
        os.chown(path, account.pw_uid, account.pw_gid)
    for name, text in etc_files(layout).items():
        write_whole(layout.system / name, text)
    (layout.system / "shadow").chmod(0o600)
    host_keys = {}
    for node in layout.nodes:
        _make_folder(node.system)
        _make_folder(node.folder)
        os.chown(node.folder, account.pw_uid, account.pw_gid)
        kernel.run(commands.make_key(node.host_key, node.name))
        host_keys[node.name] = node.host_key.with_suffix(".pub").read_text(encoding="utf-8")
        write_whole(node.sshd_config, sshd_config(layout, node))
    write_whole(layout.known_hosts, known_hosts(layout, host_keys))
    write_whole(layout.ssh_config, ssh_config(layout))
    write_whole(layout.hosts, hosts_toml(layout, sys.executable))


def _make_folder(path: Path) -> None:
    """Creates a folder that sshd can enter as the user who logs in, whatever root's umask."""
    path.mkdir()
    path.chmod(0o755)


def _boot(layout: Layout, node: Node) -> None:
    node.pid_file.unlink(missing_ok=True)
    node.log.unlink(missing_ok=True)
    kernel.run(commands.boot(layout, node, sys.executable))
    deadline = time.monotonic() + BOOTED_WITHIN_S
    while not _sshd(node):  # it writes its pid once it listens
        if time.monotonic() > deadline:
            log = node.log.read_text(errors="replace") if node.log.exists() else ""
            raise RunError(f"the sshd of {node.name} did not start: {' '.join(log.split())}")
        time.sleep(0.01)


def _left_over(name: str) -> RunError:
    return RunError(
        f"of lab {name} only a part is left, by a crash or a restart; remove it with: "
        f"dragoman lab down --name {name}"
    )


def _sshd(node: Node) -> int | None:
    """Returns the process that holds the node's namespaces; None if the node is not running."""
    try:
        pid = int(node.pid_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # The pid may belong to another process by now.
    return pid if any(process.pid == pid for process in kernel.processes(node.namespace)) else None


def _user() -> str:
    """Returns the user who called: under sudo not root, so that the user owns runs in the lab."""
    name = os.environ.get("SUDO_USER", "root")
    try:
        pwd.getpwnam(name)
    except KeyError:
        return "root"
    return name
