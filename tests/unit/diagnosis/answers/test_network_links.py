import math

import numpy as np
import pytest

from dragoman.diagnosis.answers import network_links as links
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.speed.cap_turns import CapTurn
from dragoman.diagnosis.speed.capped import Cap

GBIT_S = 125e6


def host(name, port_rate=GBIT_S, rate=3e6, retransmitted=math.nan, interface="eth0"):
    ways = {"sent": rate, "received": rate}
    return HostTraffic(
        host=name,
        bytes_per_step={**ways, "predicted": rate},
        rates=ways,
        busy_rates=ways,
        burst_rates={"sent": 5e6, "received": 5e6},
        reading_s=1.0,
        interface=interface,
        port_rate=port_rate,
        retransmitted=retransmitted,
    )


HOSTS = [host("node1"), host("node2"), host("node3")]


@pytest.mark.parametrize(
    ("cap", "said", "not_said"),
    [
        (Cap(5e6, ["node2"], is_sure=True), ["link of node2", "40 Mbit/s", "1 Gbit/s"], ["likely"]),
        (Cap(5e6, ["node2"]), ["Most likely the link of node2"], ["node1", "node3"]),
        (
            Cap(5e6, hop=("node3", "node2"), is_sure=True),
            ["way from node3 to node2", "port of node3 or where node2 receives"],
            ["node1", "likely"],
        ),
        (Cap(5e6, ["node2", "node3"], is_sure=True), ["they pass no more than"], ["node1"]),
        (Cap(5e6, reason="all are alike"), ["all are alike", "40 Mbit/s"], ["node"]),
        (None, ["40 Mbit/s"], ["node"]),
    ],
)
def test_the_slowest_link_is_named_as_far_as_it_is_known(cap, said, not_said):
    words = links.slow_link_in_words(cap, 5e6, HOSTS)

    assert all(part in words for part in said)
    assert not any(part in words for part in not_said)


def test_nothing_is_said_of_links_that_pass_what_they_announce():
    assert links.slow_link_in_words(None, 0.9 * GBIT_S, HOSTS) == ""
    assert links.slow_link_in_words(None, math.nan, HOSTS) == ""
    assert links.slow_link_in_words(None, 5e6, []) == ""


def test_a_port_that_announces_less_than_the_others_is_named():
    hosts = [host("node1", 10 * GBIT_S), host("node2")]
    words = links.slow_link_in_words(None, 0.9 * GBIT_S, hosts)

    assert "node2 announces 1 Gbit/s" in words


def test_the_traffic_of_all_hosts_is_told_as_a_range():
    words = links.traffic_in_words([host("node1", rate=1e6), host("node2", rate=2e6)])

    assert "1 MB/s to 2 MB/s" in words
    assert links.traffic_in_words([]) == "How many bytes passed was not recorded."


def test_traffic_within_one_host_is_told_to_be_that():
    words = links.traffic_in_words([host("node1", math.nan, interface="lo")])

    assert words.startswith("node1 sent")
    assert "within the host" in words


@pytest.mark.parametrize(
    ("verdict", "share", "is_said"),
    [
        ("network-bound", 0.03, True),
        ("network-bound", 0.001, False),
        ("compute-bound", 0.03, False),
    ],
)
def test_packets_sent_again_are_told_where_the_network_is_slow(verdict, share, is_said):
    words = links.retransmitted_in_words([host("node1", retransmitted=share)], verdict)

    assert bool(words) == is_said


def test_what_is_not_known_of_a_link_is_no_figure():
    assert links.cap_figures(None, math.nan) == []
    named = links.cap_figures(Cap(5e6, ["node2"]), 5e6)
    assert [(figure.name, figure.value) for figure in named] == [
        ("rate while all wait, at most", 5e6),
        ("slowest link", "node2"),
    ]


def test_a_cap_that_has_moved_is_told_with_when_it_was_where():
    first, second = (Cap(5e6, [name], is_sure=True) for name in ("node1", "node2"))
    turns = [CapTurn(first, None, 300, np.arange(300)), CapTurn(second, 301, None, np.arange(9))]
    words = links.slow_link_in_words(second, 5e6, HOSTS, turns=turns)

    assert words.startswith("The link of node2 holds all back")
    assert "since step 301; before, it was the link of node1 until step 300" in words
