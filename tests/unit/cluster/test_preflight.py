import threading
from dataclasses import replace

import pytest

from dragoman.cluster.hosts import Host, load_cluster
from dragoman.cluster.preflight import (
    Facts,
    check_alike,
    check_data,
    meanings_of,
    on_all,
    side_by_side,
    workers_of,
)
from dragoman.errors import RunError, UserError
from dragoman.version import code_hash

A = Facts("a", "/a", "1", code_hash(), "3.11", "2.13.0+cu126", 0, 8, [], 10**9, "d1")
B = replace(A, hostname="b", folder="/b", torch="2.13.0+cpu")


def test_hosts_with_the_same_code_and_torch_are_alike_whatever_cuda_it_was_built_for():
    check_alike({"a": A, "b": B})


@pytest.mark.parametrize(
    ("other", "facts"),
    [
        (replace(B, code="other"), r"^b: .*dragoman setup"),
        (replace(B, code="other", version="0.0.1"), r"^b: .*0\.0\.1.*dragoman setup"),
        (replace(B, torch="2.14.0"), r"^b: .*2\.14\.0.*2\.13\.0.*dragoman setup"),
    ],
    ids=["code", "version", "torch"],
)
def test_a_host_that_differs_is_named_with_what_to_do(other, facts):
    with pytest.raises(UserError, match=facts):
        check_alike({"a": A, "b": other})


@pytest.mark.parametrize(
    ("listed", "wish", "cuda", "device", "workers"),
    [
        (None, None, 4, "auto", 4),
        (None, 2, 4, "auto", 2),
        (3, 2, 4, "auto", 3),
        (None, None, 4, "cpu", 1),
        (None, None, 0, "auto", 1),
    ],
)
def test_how_many_workers_a_host_starts(listed, wish, cuda, device, workers):
    facts = {"a": replace(A, cuda_devices=cuda)}
    assert workers_of(Host(name="a", devices=listed), facts, device, wish) == workers


def test_more_workers_than_devices_are_refused_beside_a_host_that_has_some():
    facts = {"a": replace(A, cuda_devices=2), "b": B}
    with pytest.raises(UserError, match=r"^b: 1 CUDA.* 0 .*a "):
        workers_of(Host(name="b"), facts, "auto", None)


def test_the_data_of_this_machine_decides_and_who_lacks_it_is_listed():
    assert check_data({"a": A, "b": replace(B, data=None)}, here="d1") == ("d1", ["b"])
    assert check_data({"a": A, "b": B}, here=None) == ("d1", [])
    assert check_data({"a": replace(A, data=None)}, here=None) == (None, ["a"])


@pytest.mark.parametrize(
    ("other", "fact"),
    [(replace(B, data="d2"), "d2"), (replace(B, data="damaged", data_error="torn"), "torn")],
)
def test_other_or_damaged_data_is_refused_with_the_host(other, fact):
    with pytest.raises(UserError, match=f"^b: .*{fact}"):
        check_data({"a": A, "b": other}, here="d1")


def test_hosts_are_asked_side_by_side_and_each_failure_is_kept_with_its_host():
    together = threading.Barrier(3, timeout=60)

    def do(host):
        together.wait()
        if host.name == "b":
            raise RunError("b: is down")
        return host.name.upper()

    results = side_by_side(load_cluster("a,b,c"), do)
    assert (results["a"], results["c"]) == ("A", "C")
    assert str(results["b"]) == "b: is down"
    with pytest.raises(UserError, match="b: is down"):
        on_all(load_cluster("a,b,c"), do)


def test_a_name_stands_for_what_the_ssh_configuration_says(tmp_path):
    config = tmp_path / "ssh_config"
    config.write_text("Host gpu1\n  HostName 10.0.3.1\n")
    cluster = load_cluster("gpu1").model_copy(update={"ssh_config": str(config)})
    assert meanings_of(cluster) == {"gpu1": ["10.0.3.1"]}
