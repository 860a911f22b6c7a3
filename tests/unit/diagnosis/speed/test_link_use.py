import math

import pytest

from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.speed.link_use import (
    by_port,
    counted_against_predicted,
    link_between,
    most_retransmitted,
    passes_elsewhere,
)

GBIT_S = 125e6


def host(name="a", sent=100e6, predicted=100e6, port_rate=math.nan, retransmitted=math.nan):
    return HostTraffic(
        host=name,
        bytes_per_step={"sent": sent, "received": sent, "predicted": predicted},
        rates={"sent": sent, "received": sent},
        busy_rates={},
        burst_rates={},
        reading_s=1.0,
        interface="eth0",
        port_rate=port_rate,
        retransmitted=retransmitted,
    )


@pytest.mark.parametrize(
    ("sent", "predicted", "found"),
    [
        (104e6, 100e6, "as predicted"),
        (150e6, 100e6, "more than predicted"),
        (50e6, 100e6, "less than predicted"),
        (150e3, 100e3, "as predicted"),  # small messages
        (1e3, 0.0, "no traffic"),
        (1e6, 0.0, "more than predicted"),
    ],
)
def test_counted_bytes_are_compared_with_what_the_algorithm_must_send(sent, predicted, found):
    assert counted_against_predicted([host(sent=sent, predicted=predicted)], step_s=1.0) == found


def test_bytes_that_nobody_counted_compare_with_nothing():
    assert counted_against_predicted([], step_s=1.0) is None


def test_the_link_between_hosts_is_as_good_as_the_worst_of_them():
    hosts = [host("a", sent=1e6, port_rate=5e7), host("b", sent=2e6, port_rate=1e8), host("c")]
    link = link_between(hosts, gradient_bytes=26 * 2**20)

    assert (link.bytes_per_step, link.carried, link.port_rate) == (100e6, 1e6, 5e7)
    assert (link.messages, link.reading_s) == (3.0, 1.0)


def test_nothing_is_known_of_the_link_of_hosts_that_have_counted_nothing():
    assert math.isnan(link_between([], gradient_bytes=1).capability)


def test_the_host_that_retransmits_most_counts():
    assert most_retransmitted([host(retransmitted=0.02), host(), host(retransmitted=0.001)]) == 0.02
    assert most_retransmitted([host()]) == 0.0


def test_hosts_are_ordered_by_the_rates_that_their_ports_announce():
    hosts = [host("a", port_rate=10 * GBIT_S), host("b"), host("c", port_rate=GBIT_S)]

    assert [each.host for each in by_port(hosts)] == ["c", "a"]


def test_bytes_that_nobody_counts_pass_elsewhere():
    assert passes_elsewhere([host("a", sent=9e3), host("b", sent=9e3)])
    assert not passes_elsewhere([host("a"), host("b")])
    assert not passes_elsewhere([host("a", sent=9e3)]), "one host has no way to another"
