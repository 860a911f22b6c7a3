"""The names, addresses and files of a lab: a few numbers come in, names, addresses and texts go
out. Pure.

    /var/lib/dragoman-labs/<name>/
      hosts.toml, ssh_config   for `dragoman train --hosts` and for ssh
      key, known_hosts         made for this lab alone
      node1/, node2/, ...      the working folder of each node
      system/                  what the nodes' sshd and file system are made of
      lab.json                 this layout
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import tomli_w

from dragoman.errors import RunError, UserError

# Not /run, which is memory on most systems: the nodes' runs and checkpoints are kept here.
LABS = Path("/var/lib/dragoman-labs")
NAMESPACES = Path("/run/netns")
MAX_NODES = 200
MACHINE_NUMBER = 254
# In a node's folder: where `lab disk` mounts a file system, and where its runs are.
DISK = "runs"

# The bridge's own address. It has no IP address, so what is sent there is never answered.
NOWHERE = "02:64:72:61:67:6f"
# In the namespace of the switch a port has the name of its node.
BRIDGE, MACHINE_PORT = "switch", "machine"

# The name of a network interface has at most 15 characters.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,9}")
_NAMESPACE = re.compile(rf"dragoman-lab-({_NAME.pattern})-(?:switch|node\d+)")
_LINK = re.compile(rf"dlab-({_NAME.pattern})")


@dataclass(frozen=True)
class Node:
    name: str
    address: IPv4Address
    namespace: str
    folder: Path
    system: Path

    @property
    def host_key(self) -> Path:
        return self.system / "host_key"

    @property
    def sshd_config(self) -> Path:
        return self.system / "sshd_config"

    @property
    def pid_file(self) -> Path:
        return self.system / "sshd.pid"

    @property
    def log(self) -> Path:
        return self.system / "sshd.log"


@dataclass(frozen=True)
class Layout:
    name: str
    network: IPv4Network
    count: int
    user: str
    """The user who logs in to the nodes, and owns what is written there."""

    @property
    def folder(self) -> Path:
        return folder_of(self.name)

    @property
    def state(self) -> Path:
        return self.folder / "lab.json"

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts.toml"

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def system(self) -> Path:
        return self.folder / "system"

    @property
    def authorized_keys(self) -> Path:
        return self.system / "authorized_keys"

    @property
    def switch(self) -> str:
        return f"dragoman-lab-{self.name}-switch"

    @property
    def link(self) -> str:
        return link_of(self.name)

    @property
    def machine_address(self) -> IPv4Address:
        return self.network[MACHINE_NUMBER]

    @property
    def nodes(self) -> list[Node]:
        return [self._node(number) for number in range(1, self.count + 1)]

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if name in (node.name, node.name.removeprefix("node")):
                return node
        raise UserError(f"lab {self.name} has no {name!r}; its nodes are node1 to node{self.count}")

    def _node(self, number: int) -> Node:
        name = f"node{number}"
        return Node(
            name,
            self.network[number],
            f"dragoman-lab-{self.name}-{name}",
            self.folder / name,
            self.system / name,
        )


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is not a name for a lab; use up to 10 lowercase letters, digits and hyphens"
        )
    return name


def folder_of(name: str) -> Path:
    return LABS / name


def link_of(name: str) -> str:
    """Returns the name of the one interface that a lab adds to the machine's own."""
    return f"dlab-{name}"


def labs_among(namespaces: Iterable[str], links: Iterable[str], folders: Iterable[str]) -> set[str]:
    """Returns the names of the labs that any of these belong to."""
    matches = [_NAMESPACE.fullmatch(name) for name in namespaces]
    matches += [_LINK.fullmatch(name) for name in links]
    found = {match[1] for match in matches if match}
    return found | {name for name in folders if _NAME.fullmatch(name)}


def namespaces_of(name: str, namespaces: Iterable[str]) -> list[str]:
    matches = [_NAMESPACE.fullmatch(namespace) for namespace in namespaces]
    return [match[0] for match in matches if match and match[1] == name]


def free_network(taken: Iterable[IPv4Network]) -> IPv4Network:
    """Returns a /24 that overlaps with no address or route of the machine.

    The second range is reserved for benchmarks of network devices; it is for machines that route
    all of 10.x.
    """
    known = list(taken)
    for whole in ("10.77.0.0/16", "10.0.0.0/8", "198.18.0.0/15"):
        for network in IPv4Network(whole).subnets(new_prefix=24):
            if not any(network.overlaps(other) for other in known):
                return network
    raise RunError("no free network is left for a lab; take others down: dragoman lab down --all")


def hosts_toml(layout: Layout, python: str) -> str:
    hosts = [
        {
            "name": node.name,
            "address": str(node.address),
            "python": python,
            "folder": str(node.folder),
            "devices": 1,
        }
        for node in layout.nodes
    ]
    return tomli_w.dumps({"ssh_config": layout.ssh_config.name, "hosts": hosts})


def ssh_config(layout: Layout) -> str:
    return "\n".join(
        f"Host {node.name}\n"
        f"    HostName {node.address}\n"
        f"    Port 22\n"
        f"    User {layout.user}\n"
        f"    IdentityFile {layout.key}\n"
        f"    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {layout.known_hosts}\n"
        f"    StrictHostKeyChecking yes\n"
        for node in layout.nodes
    )


def sshd_config(layout: Layout, node: Node) -> str:
    return (
        f"ListenAddress {node.address}:22\n"
        f"HostKey {node.host_key}\n"
        f"PidFile {node.pid_file}\n"
        f"AuthorizedKeysFile {layout.authorized_keys}\n"
        f"AllowUsers {layout.user}\n"
        "AuthenticationMethods publickey\n"
        "PermitRootLogin prohibit-password\n"
        "PermitUserRC no\n"
        "StrictModes no\n"
        "UsePAM no\n"
        "UseDNS no\n"
        "PrintMotd no\n"
        "MaxStartups 100\n"
        "Subsystem sftp internal-sftp\n"
        # Bash reads ~/.bashrc in an ssh session unless it finds itself inside another shell. What
        # the machine's owner does there, slow as it may be, is not the node's.
        "SetEnv SHLVL=1\n"
    )


def known_hosts(layout: Layout, host_keys: dict[str, str]) -> str:
    return "".join(
        f"{node.name},{node.address} {' '.join(host_keys[node.name].split()[:2])}\n"
        for node in layout.nodes
    )


def etc_files(layout: Layout) -> dict[str, str]:
    """Returns the files of /etc that each node has instead of the machine's own.

    sshd rejects users whose password is locked, as in cloud images. Only keys count here, so the
    nodes' own shadow file has a password that matches nothing, which is not locked.
    """
    names = "".join(f"{node.address} {node.name}\n" for node in layout.nodes)
    return {
        "hosts": f"127.0.0.1 localhost\n::1 localhost\n{layout.machine_address} machine\n{names}",
        "shadow": f"{layout.user}:*:20000:0:99999:7:::\n",
    }
