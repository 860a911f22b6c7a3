import pytest

from dragoman.cluster.hosts import Cluster, load_cluster
from dragoman.cluster.network import Interface, check_public, check_twice, choose_interfaces
from dragoman.errors import UserError

LOOPBACK = Interface("lo", "127.0.0.1", 8)
DOCKER = Interface("docker0", "172.17.0.1", 16)


def private(number: int) -> Interface:
    return Interface("ens5", f"10.0.3.{number}", 24)


def cluster(**more: object) -> Cluster:
    return load_cluster("a,b").model_copy(update=more)


def with_address(address: str) -> Cluster:
    first, second = load_cluster("a,b").hosts
    return cluster(hosts=(first.model_copy(update={"address": address}), second))


def test_the_network_is_found_from_what_names_stand_for():
    meanings = {"a": ["10.0.3.1"], "b": ["10.0.3.2"]}
    have = {"a": [LOOPBACK, DOCKER, private(1)], "b": [LOOPBACK, DOCKER, private(2)]}
    chosen = choose_interfaces(cluster(), meanings, have)
    assert chosen == {"a": private(1), "b": private(2)}


def test_where_names_say_nothing_the_common_private_network_is_taken():
    have = {"a": [LOOPBACK, DOCKER, private(1)], "b": [LOOPBACK, DOCKER, private(2)]}
    assert choose_interfaces(cluster(), {}, have) == {"a": private(1), "b": private(2)}


def test_a_name_that_stands_for_loopback_on_its_own_host_is_not_taken():
    have = {"a": [LOOPBACK, private(1)], "b": [LOOPBACK, private(2)]}
    chosen = choose_interfaces(cluster(), {"a": ["127.0.0.1"], "b": ["10.0.3.2"]}, have)
    assert chosen["a"] == private(1)


def test_one_host_alone_may_use_loopback():
    alone = load_cluster("a")
    assert choose_interfaces(alone, {"a": ["127.0.0.1"]}, {"a": [LOOPBACK]}) == {"a": LOOPBACK}


def test_a_named_interface_is_taken_and_a_missing_one_named():
    other = Interface("ib0", "10.9.0.1", 24)
    have = {"a": [private(1), other], "b": [private(2)]}
    with pytest.raises(UserError, match=r"^b: .*ib0.* ens5 10\.0\.3\.2"):
        choose_interfaces(cluster(interface="ib0"), {}, have)


def test_an_address_that_no_interface_has_is_refused():
    have = {"a": [private(1)], "b": [private(2)]}
    with pytest.raises(UserError, match=r"^a: .*interfaces.* 10\.0\.3\.9"):
        choose_interfaces(with_address("10.0.3.9"), {}, have)


def test_without_a_common_network_or_with_two_the_list_must_say():
    apart = {"a": [Interface("e", "10.1.0.1", 24)], "b": [Interface("e", "10.2.0.1", 24)]}
    with pytest.raises(UserError, match=r"^a: .*no private network"):
        choose_interfaces(cluster(), {}, apart)
    second = {name: Interface("x", f"192.168.1.{n}", 24) for n, name in ((1, "a"), (2, "b"))}
    both = {"a": [private(1), second["a"]], "b": [private(2), second["b"]]}
    with pytest.raises(UserError, match=r"^a: .*several networks.*ens5, x"):
        choose_interfaces(cluster(), {}, both)


def test_public_addresses_are_refused_unless_allowed():
    with pytest.raises(UserError, match=r"^b: .*8\.8\.8\.8.*public"):
        check_public(cluster(), {"a": ["10.0.3.1"], "b": ["8.8.8.8"]})
    with pytest.raises(UserError, match=r"^a: address = '8\.8\.4\.4'.*public"):
        check_public(with_address("8.8.4.4"), {})
    check_public(cluster(allow_public=True), {"b": ["8.8.8.8"]})
    public = {"a": [Interface("e", "8.8.8.1", 24)], "b": [Interface("e", "8.8.8.2", 24)]}
    meanings = {"a": ["8.8.8.1"], "b": ["8.8.8.2"]}
    with pytest.raises(UserError, match=r"^a: e .*public.*8\.8\.8\.1"):
        choose_interfaces(cluster(), meanings, public)
    assert choose_interfaces(cluster(allow_public=True), meanings, public)["b"].name == "e"


def test_a_private_address_in_the_list_answers_for_a_public_name():
    check_public(with_address("10.0.3.1"), {"a": ["8.8.8.8"], "b": ["10.0.3.2"]})


def test_two_names_of_one_host_are_refused():
    with pytest.raises(UserError, match=r"^b: .*twice.*\ba\b.*10\.0\.3\.1"):
        check_twice(cluster(), {"a": ["10.0.3.1"], "b": ["10.0.3.1"]})
