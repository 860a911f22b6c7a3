import pytest
from check_worlds import MBIT, host, names, ports, rates, transfers

from dragoman.check.links import (
    Failure,
    announced_findings,
    failure_findings,
    latency_findings,
    link_findings,
)
from dragoman.check.result import Computing
from dragoman.check.workload import Workload

BASE = Workload("base", 60_880_896, 1e13, 365e6, 730_000_000, 5)


def with_trips(trips):
    return [
        t.model_copy(update={"round_trip_s": trips.get((t.sender, t.receiver), 1e-4)})
        for t in transfers(rates(ports(4)))
    ]


def computing(step_s):
    return Computing(
        host="node1", rank=0, step_s=(step_s,), forward_s=0.1, backward_s=0.1,
        last_backward_s=0.1, update_s=0.1, micro_batches=1, peak_memory_bytes=1,
    )  # fmt: skip


def test_latency_without_loss_of_bandwidth_between_two_hosts():
    far = {("node1", "node2"): 0.03, ("node2", "node1"): 0.03}
    (finding,) = latency_findings(with_trips(far))
    assert finding.verdict == "warning"
    assert finding.hosts == ("node1", "node2")
    assert "without loss of bandwidth" in finding.sentence


def test_a_host_that_is_far_from_all_others_is_named_alone():
    far = {way: 0.03 for way in rates(ports(4)) if "node4" in way}
    (finding,) = latency_findings(with_trips(far))
    assert finding.hosts == ("node4",)


def test_busy_processors_are_no_distance():
    (finding,) = latency_findings(with_trips({("node1", "node2"): 0.002}))
    assert finding.verdict == "good"


def test_hosts_of_different_sites():
    (finding,) = latency_findings(transfers(rates(ports(4)), trip_s=0.02))
    assert finding.verdict == "warning"


def test_a_way_that_carries_nothing_is_one_finding_for_both_directions():
    failures = [Failure("a", "b", "node b: no answer"), Failure("b", "a", "node a: no answer")]
    (finding,) = failure_findings(failures)
    assert finding.hosts == ("a", "b")
    assert finding.verdict == "unfit"


def test_a_host_that_gets_no_port_is_one_finding_whoever_would_have_sent():
    failures = [Failure(n, "b", "b: may not listen", may_listen=False) for n in ("a", "c", "d")]
    (finding,) = failure_findings(failures)
    assert finding.hosts == ("b",)
    assert finding.subject == "port"


def test_what_an_interface_announces_names_the_host_where_figures_cannot():
    hosts = [host("a", link_bytes_per_s=125e6), host("b", link_bytes_per_s=12.5e6), host("c")]
    (finding,) = announced_findings(hosts)
    assert finding.hosts == ("b",)
    assert "100 Mbit/s" in finding.sentence


@pytest.mark.parametrize(
    ("mbits", "step_s", "verdict"),
    [(100, 1.8, "unfit"), (1000, 4.0, "warning"), (10_000, 1.8, "good")],
)
def test_the_class_of_the_link_is_judged_by_the_bytes_of_a_step(mbits, step_s, verdict):
    of = transfers(rates(dict.fromkeys(names(4), float(mbits))))
    (finding,) = link_findings(
        of, [host(name) for name in names(4)], BASE, [computing(step_s)], True
    )
    assert finding.verdict == verdict
    assert "365 MB" in finding.sentence


def test_the_users_own_figure_comes_out():
    """4 nodes, 60,880,896 parameters in fp32: about 31 s at 100 Mbit/s."""
    of = transfers(rates(dict.fromkeys(names(4), 100.0)))
    (finding,) = link_findings(of, [], BASE, [computing(1.8)], True)
    assert "30.5 s" in finding.sentence


def test_without_steps_computing_is_estimated_from_products_and_said_so():
    of = transfers(rates(ports(4)))
    (finding,) = link_findings(of, [host(name) for name in names(4)], BASE, [], True)
    assert "estimated" in finding.sentence
    unknown = [host(name, gemm_flops_per_s=None) for name in names(4)]
    (finding,) = link_findings(of, unknown, BASE, [], True)
    assert finding.verdict == "good"


def test_the_pace_is_that_of_the_slowest_port_and_not_of_a_bad_path():
    one_path = rates(ports(4), paths={("node1", "node2"): 10})
    (finding,) = link_findings(transfers(one_path), [], None, [], True)
    assert "956 Mbit/s" in finding.sentence
    one_port = rates(ports(4, node2=10))
    (finding,) = link_findings(transfers(one_port), [], None, [], False)
    assert "9.56 Mbit/s" in finding.sentence


def test_all_alike_and_far_below_what_interfaces_announce():
    of = transfers(rates(dict.fromkeys(names(4), 100.0)))
    hosts = [host(name, link_bytes_per_s=1000 * MBIT) for name in names(4)]
    (finding,) = link_findings(of, hosts, None, [], True)
    assert finding.verdict == "warning"
    assert "announce 1 Gbit/s" in finding.sentence


def test_nothing_is_said_of_a_network_that_was_not_measured():
    assert latency_findings([]) == link_findings([], [], BASE, [], True) == []
