"""The commands that make, limit and break a lab, as lists of arguments. Pure."""

from pathlib import Path
from pwd import struct_passwd

from dragoman.lab.layout import BRIDGE, MACHINE_PORT, NOWHERE, Layout, Node
from dragoman.lab.rates import Direction, bucket

Command = list[str]


def make_switch(layout: Layout, has_ipv6: bool) -> list[Command]:
    address = f"{layout.machine_address}/{layout.network.prefixlen}"
    switch, link = layout.switch, layout.link
    return [
        ["ip", "netns", "add", switch],
        _ip(switch, f"link add {BRIDGE} address {NOWHERE} type bridge"),
        *_without_chatter(switch, BRIDGE, has_ipv6),
        _ip(switch, f"link set {BRIDGE} up"),
        # In one step: at no moment is there an interface on the machine without its peer inside.
        _ip(None, f"link add {link} type veth peer name {MACHINE_PORT} netns {switch}"),
        *_without_chatter(None, link, has_ipv6),
        _ip(None, f"address add {address} dev {link}"),
        _ip(None, f"link set {link} up"),
        *_without_chatter(switch, MACHINE_PORT, has_ipv6),
        _ip(switch, f"link set {MACHINE_PORT} master {BRIDGE} up"),
    ]


def make_node(layout: Layout, node: Node, rate_bits: int, has_ipv6: bool) -> list[Command]:
    address = f"{node.address}/{layout.network.prefixlen}"
    switch, inside = layout.switch, node.namespace
    return [
        ["ip", "netns", "add", inside],
        _ip(inside, "link set lo up"),
        _ip(switch, f"link add {node.name} type veth peer name eth0 netns {inside}"),
        *limit(layout, node, rate_bits),
        *_without_chatter(switch, node.name, has_ipv6),
        _ip(switch, f"link set {node.name} master {BRIDGE} up"),
        *_without_chatter(inside, "eth0", has_ipv6),
        _ip(inside, f"address add {address} dev eth0"),
        _ip(inside, "link set eth0 up"),
    ]


def limit(
    layout: Layout, node: Node, rate_bits: int, direction: Direction = "both"
) -> list[Command]:
    """Limits what the node sends, what it receives, or each of them to `rate_bits` per second."""
    rate, burst, host_queue, switch_queue = bucket(rate_bits)
    numbers = f"root handle 1: tbf rate {rate}bit burst {burst} limit"
    ends = {
        "send": (node.namespace, "eth0", host_queue),
        "receive": (layout.switch, node.name, switch_queue),
    }
    return [
        ["tc", "-n", namespace, *f"qdisc replace dev {device} {numbers} {queue}".split()]
        for end, (namespace, device, queue) in ends.items()
        if direction in (end, "both")
    ]


def connect(layout: Layout, node: Node, is_up: bool) -> Command:
    """Sets the node's port of the switch up or down; when down, the node is cut off."""
    return _ip(layout.switch, f"link set {node.name} {'up' if is_up else 'down'}")


def block(one: Node, other: Node) -> Command:
    """Makes `one` send packets for `other` to an address where nobody answers.

    A blackhole route would notify the sender; a filter would need kernel modules that small
    kernels lack.
    """
    neighbor = f"{other.address} lladdr {NOWHERE} dev eth0 nud permanent"
    return _ip(one.namespace, f"neighbor replace {neighbor}")


def unblock(one: Node, other: Node) -> Command:
    return _ip(one.namespace, f"neighbor delete {other.address} dev eth0")


def share_mounts(folder: Path) -> list[Command]:
    """Makes file systems that are mounted in `folder` later appear in the nodes too."""
    return [
        ["mount", "--bind", str(folder), str(folder)],
        ["mount", "--make-private", str(folder)],
        ["mount", "--make-shared", str(folder)],
    ]


def mount_disk(place: Path, size_bytes: int, account: struct_passwd) -> Command:
    options = f"size={size_bytes},mode=755,uid={account.pw_uid},gid={account.pw_gid}"
    return ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]


def resize_disk(place: Path, size_bytes: int) -> Command:
    return ["mount", "-o", f"remount,size={size_bytes}", str(place)]


def boot(layout: Layout, node: Node, python: str) -> Command:
    """Boots a node; `ip netns exec` gives it its own view of the file system."""
    namespaces = ["ip", "netns", "exec", node.namespace, "unshare", "--uts", "--"]
    files = [str(layout.system), str(node.sshd_config), str(node.log)]
    return [*namespaces, python, "-m", "dragoman.lab.boot", node.name, *files]


def enter(node: Node, pid: int, account: struct_passwd, command: list[str]) -> Command:
    """Runs `command` in the namespaces of `pid`, as the user who logs in to the node."""
    namespaces = ["nsenter", f"--target={pid}", "--net", "--uts", "--mount", "--"]
    user = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups"]
    variables = [f"--chdir={node.folder}", f"HOME={account.pw_dir}", f"USER={account.pw_name}"]
    return [*namespaces, *(user if account.pw_uid else []), "env", *variables, *command]


def make_key(path: Path, comment: str) -> Command:
    return ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]


def _without_chatter(namespace: str | None, device: str, has_ipv6: bool) -> list[Command]:
    """Disables IPv6 addresses, whose announcements would count as traffic of the node."""
    return [_ip(namespace, f"link set {device} addrgenmode none")] if has_ipv6 else []


def _ip(namespace: str | None, text: str) -> Command:
    """Splits `text` at spaces; safe since names are checked and addresses are numbers."""
    return ["ip", *(["-n", namespace] if namespace else []), *text.split()]
