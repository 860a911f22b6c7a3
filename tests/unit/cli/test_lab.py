import pytest

from dragoman.cli.lab import _facts, _named, _node_rates
from dragoman.errors import UserError
from dragoman.lab.status import Disk, NodeStatus

NODE = NodeStatus("node1", "10.0.0.1", None, None, 0, 0, 0.0, 0.0, True, False, False, (), None, ())


def test_rates_of_single_hosts_go_by_number_or_name():
    assert _node_rates(["2=10mbit", "node3=1gbit"]) == {2: "10mbit", 3: "1gbit"}
    assert _node_rates(None) == {}


@pytest.mark.parametrize("wrong", ["2", "2=", "=1gbit", "two=1gbit", ""])
def test_a_rate_of_nobody_is_named(wrong):
    with pytest.raises(UserError, match=f"--node-rate {wrong}"):
        _node_rates([wrong])


def test_a_lab_of_the_usual_name_needs_no_name():
    assert _named("lab") == ""
    assert _named("other") == " --name other"


def test_what_is_wrong_with_a_host_is_told_and_nothing_of_one_that_is_well():
    assert _facts(NODE) == []
    broken = NodeStatus(
        **vars(NODE)
        | {"is_running": False, "is_cut": True, "parted_from": ("node2", "node3")}
        | {"disk": Disk(50_000_000, 12_300_000)}
    )
    told = " ".join(_facts(broken))
    for fact in ("not running", "cut", "node2, node3", "12.3 of 50.0 MB"):
        assert fact in told
    assert "paused" not in told
