import tomllib
from ipaddress import IPv4Network

import pytest

from dragoman.cluster.hosts import load_cluster
from dragoman.errors import RunError, UserError
from dragoman.lab.layout import (
    MAX_NODES,
    Layout,
    check_name,
    etc_files,
    free_network,
    hosts_toml,
    known_hosts,
    labs_among,
    link_of,
    namespaces_of,
    ssh_config,
    sshd_config,
)

LAYOUT = Layout("lab", IPv4Network("10.77.3.0/24"), 3, "anna")
LONGEST = "0123456789"


@pytest.mark.parametrize("name", ["lab", "a", "run-1f2e3d", LONGEST, "a-node1"])
def test_names_fit_where_the_kernel_is_short(name):
    assert check_name(name) == name
    assert len(link_of(name)) <= 15


@pytest.mark.parametrize("name", ["", "Lab", "a b", "../x", "-a", LONGEST + "x", "a\n", "ä"])
def test_other_names_are_refused(name):
    with pytest.raises(UserError, match="is not a name for a lab"):
        check_name(name)


def test_labs_are_found_by_any_part_that_is_left():
    layouts = [Layout(name, LAYOUT.network, 2, "anna") for name in ("a", "a-node1", "b-switch")]
    namespaces = [layout.switch for layout in layouts]
    namespaces += [node.namespace for layout in layouts for node in layout.nodes]
    assert labs_among([*namespaces, "blue", "dragoman-lab-"], [], []) == {
        "a",
        "a-node1",
        "b-switch",
    }
    for layout in layouts:
        assert set(namespaces_of(layout.name, namespaces)) == {
            layout.switch,
            *(node.namespace for node in layout.nodes),
        }
    assert labs_among([], ["lo", "eth0", "dlab-c"], []) == {"c"}
    assert labs_among([], [], ["d", "Not a lab"]) == {"d"}


def test_addresses_are_distinct_and_inside_for_the_largest_lab():
    layout = Layout("lab", LAYOUT.network, MAX_NODES, "anna")
    addresses = [node.address for node in layout.nodes] + [layout.machine_address]
    assert len(set(addresses)) == MAX_NODES + 1
    inside = set(layout.network.hosts())
    assert set(addresses) <= inside


def test_a_node_goes_by_its_name_or_number():
    assert LAYOUT.node("node2") == LAYOUT.node("2") == LAYOUT.nodes[1]
    for name in ("node4", "0", "node", "machine"):
        with pytest.raises(UserError, match="node1 to node3"):
            LAYOUT.node(name)


def test_a_network_in_use_is_left_alone():
    assert free_network([]) == IPv4Network("10.77.0.0/24")
    taken = ["10.77.0.0/24", "10.77.1.5/32", "192.168.0.0/16"]
    assert free_network(map(IPv4Network, taken)) == IPv4Network("10.77.2.0/24")
    assert free_network([IPv4Network("10.77.0.0/16")]) == IPv4Network("10.0.0.0/24")
    assert free_network([IPv4Network("10.0.0.0/8")]) == IPv4Network("198.18.0.0/24")
    with pytest.raises(RunError, match="no free network"):
        free_network([IPv4Network("0.0.0.0/0")])


def test_the_host_list_is_one_that_training_reads(tmp_path):
    (tmp_path / "ssh_config").write_text(ssh_config(LAYOUT))
    path = tmp_path / "hosts.toml"
    path.write_text(hosts_toml(LAYOUT, '/a folder/"python"'))
    cluster = load_cluster(str(path))
    assert [host.name for host in cluster.hosts] == ["node1", "node2", "node3"]
    assert [host.address for host in cluster.hosts] == ["10.77.3.1", "10.77.3.2", "10.77.3.3"]
    assert {host.python for host in cluster.hosts} == {'/a folder/"python"'}
    assert cluster.ssh_config == str(tmp_path / "ssh_config")
    assert set(tomllib.loads(path.read_text())) == {"ssh_config", "hosts"}


def test_ssh_uses_the_labs_own_files_and_nothing_of_the_user():
    text = ssh_config(LAYOUT)
    assert text.count("Host ") == text.count("StrictHostKeyChecking yes") == 3
    assert "~" not in text + sshd_config(LAYOUT, LAYOUT.nodes[0])
    for line in sshd_config(LAYOUT, LAYOUT.nodes[0]).splitlines():
        word, value = line.split(" ", 1)
        if word.endswith(("File", "Key")):
            assert value.startswith(str(LAYOUT.folder))


def test_known_hosts_holds_the_real_keys():
    keys = {node.name: f"ssh-ed25519 KEY{node.name} {node.name}\n" for node in LAYOUT.nodes}
    first = known_hosts(LAYOUT, keys).splitlines()[0]
    assert first == "node1,10.77.3.1 ssh-ed25519 KEYnode1"


def test_hosts_know_each_other_and_the_machine_by_name():
    lines = etc_files(LAYOUT)["hosts"].splitlines()
    assert "127.0.0.1 localhost" in lines
    assert "10.77.3.2 node2" in lines
    assert "10.77.3.254 machine" in lines
