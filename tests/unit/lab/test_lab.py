"""What needs no lab; tests/lab has the rest."""

from ipaddress import IPv4Network

import pytest
from labs import new_name, on_own_machine

from dragoman.errors import UserError
from dragoman.lab.lab import Lab
from dragoman.lab.layout import MAX_NODES, Layout

LAB = Lab(Layout("lab", IPv4Network("10.77.3.0/24"), 3, "root"))


@pytest.mark.parametrize(
    ("wish", "fact"),
    [
        ({"name": "Not a name"}, "Not a name"),
        ({"nodes": 0}, f"1 to {MAX_NODES}"),
        ({"nodes": MAX_NODES + 1}, str(MAX_NODES + 1)),
        ({"rate": "fast"}, "fast"),
        ({"nodes": 2, "node_rates": {3: "1gbit"}}, "node 3"),
        ({"node_rates": {1: "slow"}}, "slow"),
    ],
)
def test_a_lab_that_cannot_be_is_refused_before_anything_is_made(wish, fact):
    with pytest.raises(UserError, match=fact):
        Lab.up(**{"name": new_name()} | wish).down()  # where it came up after all


def test_nodes_go_by_name_or_number_and_nobody_is_parted_from_itself():
    assert LAB.node("2") == LAB.node("node2") == LAB.nodes[1]
    with pytest.raises(UserError, match="node4"):
        LAB.rate("node4", "1gbit")
    with pytest.raises(UserError, match="node1"):
        LAB.partition("node1", "1")


def test_files_without_a_lab_behind_them_are_told_of_and_removed():
    """As after a restart of the machine."""
    on_own_machine(
        "from dragoman.errors import RunError, UserError\n"
        "from dragoman.lab import Lab, lab_names, remove_lab\n"
        "from dragoman.lab.layout import folder_of\n"
        "from dragoman.rundir import write_json\n"
        "def refused(kind):\n"
        "    try: Lab.open('old')\n"
        "    except kind as error: return 'old' in str(error)\n"
        "assert refused(UserError)\n"
        "folder_of('old').mkdir(parents=True)\n"
        "assert refused(RunError), 'without a description'\n"
        "state = {'network': '10.77.1.0/24', 'nodes': 2, 'user': 'root'}\n"
        "write_json(folder_of('old') / 'lab.json', state)\n"
        "assert refused(RunError), 'without namespaces'\n"
        "assert lab_names() == {'old'}\n"
        "remove_lab('old')\n"
        "assert not folder_of('old').exists() and lab_names() == set()\n"
    )
