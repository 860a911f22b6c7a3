import pytest
from check_worlds import host

from dragoman.check.verdicts import (
    Examined,
    clock_findings,
    config_findings,
    data_findings,
    device_findings,
    disk_findings,
    load_findings,
    version_findings,
)
from dragoman.check.workload import Workload

CODE, VERSION = "c" * 64, "1"
BASE = Workload("base", 60_880_896, 1e13, 365e6, 730_000_000, 5)


def examined(name="node1", code=CODE, facts=None, **more):
    return Examined(facts=host(name, **(facts or {})), code=code, **more)


def cluster(**changed):
    """Four hosts, some of them other than the rest."""
    hosts = {name: examined(name) for name in ("node1", "node2", "node3", "node4")}
    return list((hosts | changed).values())


def bad(findings):
    return {(f.hosts, f.verdict) for f in findings if f.verdict != "good"}


def versions(hosts):
    return version_findings(hosts, CODE, VERSION)


def test_alike_hosts_give_one_good_line_a_subject():
    hosts = cluster()
    for findings in (
        versions(hosts),
        clock_findings(hosts),
        data_findings(hosts, None),
        disk_findings(hosts, None),
        load_findings(hosts),
        device_findings(hosts),
        config_findings(hosts, "base"),
    ):
        assert [f.verdict for f in findings] == ["good"]


def test_other_code_is_unfit():
    assert bad(versions(cluster(node2=examined("node2", code="d")))) == {(("node2",), "unfit")}


def test_the_command_that_helps_is_whole():
    (finding,) = [f for f in versions(cluster(node2=examined("node2", code="d"))) if f.hosts]
    assert finding.sentence.endswith("dragoman setup --hosts ...")


def test_another_torch_is_unfit_and_another_python_or_driver_a_warning():
    assert bad(versions(cluster(node3=examined("node3", facts={"torch": "2.12.1"})))) == {
        (("node3",), "unfit")
    }
    assert bad(versions(cluster(node3=examined("node3", facts={"python": "3.12.1"})))) == {
        (("node3",), "warning")
    }
    assert bad(versions(cluster(node3=examined("node3", facts={"driver": "550"})))) == {
        (("node3",), "warning")
    }


def test_the_build_of_torch_may_differ():
    hosts = cluster(node2=examined("node2", facts={"torch": "2.13.0+cu130"}))
    assert bad(versions(hosts)) == set()


def test_other_data_is_unfit_on_the_host_that_has_it():
    hosts = cluster(node2=examined("node2", facts={"data_hash": "b" * 64}))
    assert bad(data_findings(hosts, "a" * 64)) == {(("node2",), "unfit")}
    damaged = cluster(node2=examined("node2", facts={"data_hash": None}, data_error="is torn"))
    assert bad(data_findings(damaged, "a" * 64)) == {(("node2",), "unfit")}


def test_data_that_is_missing_is_copied_later():
    hosts = cluster(node2=examined("node2", facts={"data_hash": None}))
    (finding,) = data_findings(hosts, None)
    assert finding.verdict == "good"
    assert "node2" in finding.sentence


def test_a_run_of_the_same_name_with_other_settings():
    hosts = cluster(node4=examined("node4", other_config=("model.width",)))
    (finding,) = config_findings(hosts, "base")
    assert finding.hosts == ("node4",)
    assert "model.width" in finding.sentence


@pytest.mark.parametrize(
    ("offset_s", "error_s", "expected"),
    [(0.4, 0.01, None), (-3.0, 0.01, "warning"), (90.0, 0.01, "unfit"), (1.5, 1.0, None)],
)
def test_a_clock_is_wrong_by_more_than_can_be_an_error_of_measuring(offset_s, error_s, expected):
    skewed = examined("node2", facts={"clock_offset_s": offset_s}, clock_error_s=error_s)
    found = bad(clock_findings(cluster(node2=skewed)))
    assert found == ({(("node2",), expected)} if expected else set())


def test_a_full_disk_is_unfit_by_what_the_recipe_writes():
    hosts = cluster(node3=examined("node3", facts={"free_disk_bytes": 3_000_000_000}))
    assert bad(disk_findings(hosts, BASE)) == {(("node3",), "unfit")}  # 5 x 0.73 GB
    assert bad(disk_findings(hosts, None)) == {(("node3",), "warning")}


def test_a_slow_disk_and_one_that_refuses():
    slow = cluster(node3=examined("node3", facts={"disk_bytes_per_s": 2e6}))
    assert bad(disk_findings(slow, BASE)) == {(("node3",), "warning")}
    assert bad(disk_findings(slow, None)) == {(("node3",), "warning")}
    refused = cluster(node3=examined("node3", disk_error="Read-only file system"))
    assert bad(disk_findings(refused, None)) == {(("node3",), "unfit")}


def test_other_programs_are_named():
    busy = examined("node2", processor_share=0.5, processes=(("burner", 7, 1.9),))
    (finding,) = load_findings(cluster(node2=busy))
    assert finding.hosts == ("node2",)
    assert "burner (process 7, 1.9)" in finding.sentence
    assert "2.0 of its 4 cores" in finding.sentence


def test_hosts_of_one_machine_share_a_line():
    busy = {n: examined(n, processor_share=0.5) for n in ("node1", "node2", "node3", "node4")}
    (finding,) = load_findings(cluster(**busy))
    assert finding.hosts == ("node1", "node2", "node3", "node4")


def test_stolen_processors_and_links_that_others_use():
    stolen = cluster(node2=examined("node2", steal_share=0.2))
    assert bad(load_findings(stolen)) == {(("node2",), "warning")}
    used = examined("node2", facts={"link_bytes_per_s": 125e6}, received_bytes_per_s=40e6)
    assert bad(load_findings(cluster(node2=used))) == {(("node2",), "warning")}


def test_a_host_that_computes_slower_than_the_others():
    slow = cluster(node2=examined("node2", facts={"gemm_flops_per_s": 5e10}))
    assert bad(device_findings(slow)) == {(("node2",), "warning")}
    broken = cluster(node2=examined("node2", facts={"gemm_flops_per_s": 1e10}))
    assert bad(device_findings(broken)) == {(("node2",), "unfit")}
    other = {"gemm_flops_per_s": 1e10, "device": "T4"}
    assert bad(device_findings(cluster(node2=examined("node2", facts=other)))) == {
        (("node2",), "warning")
    }


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ({"is_lost": True}, "unfit"),
        ({"ecc_errors": 3}, "unfit"),
        ({"slowdowns": ["too hot"]}, "warning"),
        ({"ecc_errors": 0, "slowdowns": []}, None),
    ],
)
def test_what_nvml_knows_of_a_gpu(gpu, expected):
    hosts = cluster(node2=examined("node2", gpus=({"number": 0, **gpu},)))
    assert bad(device_findings(hosts)) == ({(("node2",), expected)} if expected else set())
