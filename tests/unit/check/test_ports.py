"""Worlds whose slow ports and paths are known, and what is made of their figures."""

import random

import pytest
from check_worlds import MBIT, names, ports, rates, transfers

from dragoman.check.ports import class_of, flow_findings, path_findings, port_findings


def accused(of):
    return {name for finding in port_findings(of) for name in finding.hosts}


def test_a_capped_port_is_named_with_its_class():
    (finding,) = port_findings(rates(ports(4, node3=100)))
    assert finding.hosts == ("node3",)
    assert finding.verdict == "unfit"
    assert "95.6 Mbit/s" in finding.sentence
    assert "956 Mbit/s" in finding.sentence
    assert "set to 100 Mbit/s" in finding.sentence


def test_one_direction_is_told_from_both():
    (sends,) = port_findings(rates(ports(4, node3=100), ports(4)))
    (receives,) = port_findings(rates(ports(4), ports(4, node3=100)))
    assert sends.hosts == receives.hosts == ("node3",)
    assert "sending direction" in sends.sentence
    assert "receiving direction" in receives.sentence


def test_good_ports_are_not_accused():
    assert port_findings(rates(ports(4))) == path_findings(rates(ports(4))) == []


def test_a_bad_pair_with_good_ports_is_the_path():
    paths = {("node1", "node2"): 100, ("node2", "node1"): 100}
    of = rates(ports(4), paths=paths)
    assert port_findings(of) == []
    (finding,) = path_findings(of)
    assert finding.hosts == ("node1", "node2")
    assert "both directions" in finding.sentence


def test_a_path_that_is_bad_in_one_direction():
    (finding,) = path_findings(rates(ports(4), paths={("node2", "node1"): 100}))
    assert finding.sentence.startswith("From node2 to node1")
    assert "956 Mbit/s the other way" in finding.sentence


def test_a_bad_pair_beside_a_capped_port():
    paths = {("node1", "node2"): 20, ("node2", "node1"): 20}
    of = rates(ports(5, node5=100), paths=paths)
    assert accused(of) == {"node5"}
    (finding,) = path_findings(of)
    assert finding.hosts == ("node1", "node2")


def test_two_sites_with_a_slow_line_between_them_are_one_finding():
    one, other = ("node1", "node2"), ("node3", "node4")
    paths = {(a, b): 100.0 for x, y in ((one, other), (other, one)) for a in x for b in y}
    of = rates(ports(4), paths=paths)
    assert port_findings(of) == []
    (finding,) = path_findings(of)
    assert "(node1, node2) and (node3, node4)" in finding.sentence
    there = {(a, b): 100.0 for a in one for b in other}
    (finding,) = path_findings(rates(ports(4), paths=there))
    assert "From the group (node1, node2) to (node3, node4)" in finding.sentence


def test_with_two_hosts_port_and_path_are_not_guessed():
    assert port_findings(rates(ports(2, node2=100))) == []  # both ways alike: the link's class
    (finding,) = port_findings(rates(ports(2, node2=100), ports(2)))
    assert finding.hosts == ("node1", "node2")
    assert "cannot be told apart" in finding.sentence


def test_of_three_hosts_two_that_send_slowly_do_not_make_the_third_a_slow_receiver():
    of = rates(ports(3, node2=100, node3=100), ports(3))
    assert accused(of) == {"node2", "node3"}


def test_a_fast_host_among_slow_ones_cannot_be_seen_and_nobody_is_accused():
    assert port_findings(rates(ports(3, node2=100, node3=100))) == []


def test_where_most_are_slow_both_explanations_are_given():
    (finding,) = port_findings(rates(ports(5, node3=100, node4=100, node5=100)))
    assert finding.verdict == "warning"
    assert set(finding.hosts) == {"node3", "node4", "node5"}
    assert "share a machine" in finding.sentence


@pytest.mark.parametrize("seed", range(300))
def test_noise_of_a_fifth_fools_nobody(seed):
    """Nobody innocent is accused; nobody is missed unless most are slow; paths stay out of it."""
    rng = random.Random(seed)
    hosts = names(rng.randint(3, 8))
    slow = rng.sample(hosts, rng.randint(0, len(hosts)))
    send, receive = ports(len(hosts)), ports(len(hosts))
    for name in slow:
        ways = rng.choice([(send,), (receive,), (send, receive)])
        cap = rng.choice([10.0, 100.0, 300.0])
        for way in ways:
            way[name] = cap
    of = rates(send, receive, noise=rng.choice([0.0, 0.1, 0.2]), seed=seed)
    assert accused(of) <= set(slow)
    if 2 * len(slow) <= len(hosts):
        assert accused(of) == set(slow)
    assert path_findings(of) == []


def test_a_host_that_was_lost_in_the_middle_leaves_the_others_to_be_judged():
    of = {
        pair: rate
        for pair, rate in rates(ports(4, node2=100)).items()
        if "node4" not in pair or pair == ("node4", "node1")
    }
    assert accused(of) == {"node2"}


@pytest.mark.parametrize(
    ("mbits", "named"),
    [(9.4, "10 Mbit/s"), (94, "100 Mbit/s"), (941, "1 Gbit/s"), (2350, "2.5 Gbit/s"),
     (9410, "10 Gbit/s"), (9900, "10 Gbit/s"), (24_000, "25 Gbit/s"), (600, None), (40, None)],
)  # fmt: skip
def test_a_figure_that_fits_a_port_is_named_so(mbits, named):
    assert class_of(mbits * MBIT) == named


def test_one_connection_that_falls_behind_several():
    (slow,) = transfers({("node1", "node2"): 100 * MBIT}, trip_s=0.04)
    (finding,) = flow_findings([slow.model_copy(update={"several_flows_bytes_per_s": 5e7})])
    assert finding.verdict == "warning"
    assert "window" in finding.sentence  # far apart: the window limits it
    near = slow.model_copy(update={"several_flows_bytes_per_s": 5e7, "round_trip_s": 1e-4})
    assert "each connection" in flow_findings([near])[0].sentence
    assert flow_findings([slow]) == []
