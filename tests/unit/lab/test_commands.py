from ipaddress import IPv4Network
from pathlib import Path
from pwd import struct_passwd

from dragoman.lab import commands
from dragoman.lab.layout import NOWHERE, Layout

LAYOUT = Layout("lab", IPv4Network("10.77.3.0/24"), 2, "anna")
FIRST, SECOND = LAYOUT.nodes
ANNA = struct_passwd(("anna", "x", 1000, 1001, "", "/home/anna", "/bin/bash"))
ROOT = struct_passwd(("root", "x", 0, 0, "", "/root", "/bin/bash"))


def all_commands(has_ipv6=True):
    return [
        *commands.make_switch(LAYOUT, has_ipv6),
        *commands.make_node(LAYOUT, FIRST, 1_000_000, has_ipv6),
    ]


def test_the_machine_itself_gets_one_link_with_the_labs_name_and_nothing_else():
    on_machine = [c for c in all_commands() if c[1] not in ("-n", "netns")]
    assert all(command[:2] in (["ip", "link"], ["ip", "address"]) for command in on_machine)
    assert all("dlab-lab" in command for command in on_machine)


def test_nothing_forwards_and_there_is_no_way_out():
    words = {word for command in all_commands() for word in command}
    assert not words & {"route", "default", "via", "sysctl", "iptables", "nft"}


def test_both_ends_of_a_link_are_limited_alike():
    sending, receiving = commands.limit(LAYOUT, FIRST, 100_000_000)
    assert sending[:6] == ["tc", "-n", FIRST.namespace, "qdisc", "replace", "dev"]
    assert receiving[:6] == ["tc", "-n", LAYOUT.switch, "qdisc", "replace", "dev"]
    assert (sending[6], receiving[6]) == ("eth0", "node1")
    assert sending[7:-1] == receiving[7:-1]
    assert sending[-6:] == ["rate", "100000000bit", "burst", "50000", "limit", "1514000"]
    assert receiving[-1] == "625000"


def test_one_direction_can_be_limited_alone():
    both = commands.limit(LAYOUT, FIRST, 100_000_000)
    assert commands.limit(LAYOUT, FIRST, 100_000_000, "send") == both[:1]
    assert commands.limit(LAYOUT, FIRST, 100_000_000, "receive") == both[1:]


def test_a_limit_is_there_before_the_link_is_up():
    made = commands.make_node(LAYOUT, FIRST, 1_000_000, has_ipv6=True)
    limited = [number for number, command in enumerate(made) if command[0] == "tc"]
    up = [n for n, command in enumerate(made) if command[-1] == "up" and "lo" not in command]
    assert max(limited) < min(up)


def test_a_kernel_without_ipv6_is_not_asked_about_it():
    assert any("addrgenmode" in command for command in all_commands())
    assert not any("addrgenmode" in command for command in all_commands(has_ipv6=False))


def test_a_partition_is_at_the_sender():
    command = commands.block(FIRST, SECOND)
    assert command[:3] == ["ip", "-n", FIRST.namespace]
    assert str(SECOND.address) in command
    assert NOWHERE in command
    assert any(NOWHERE in made for made in commands.make_switch(LAYOUT, has_ipv6=False))


def test_a_command_on_a_node_is_never_read_by_a_shell():
    words = ["echo", "$HOME; rm", "a b", "--version"]
    for account in (ANNA, ROOT):
        assert commands.enter(FIRST, 42, account, words)[-4:] == words


def test_a_command_runs_as_the_one_who_logs_in():
    as_anna = commands.enter(FIRST, 42, ANNA, ["true"])
    assert {"--reuid=1000", "--regid=1001", "--init-groups", "HOME=/home/anna"} <= set(as_anna)
    assert "setpriv" not in commands.enter(FIRST, 42, ROOT, ["true"])


def test_a_disk_belongs_to_the_one_who_logs_in():
    options = commands.mount_disk(Path("/runs"), 5_000_000, ANNA)[4]
    assert options == "size=5000000,mode=755,uid=1000,gid=1001"
