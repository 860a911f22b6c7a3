import numpy as np
import pytest

from dragoman.diagnosis.speed.capped import PortRates, cap_of, port_rates
from dragoman.telemetry.read.tables import Table

CAP = 5e6

# Fastest tenths of a second of each second's reading, in MB/s: the 10th, 25th, 50th, 75th and 90th
# percentile and the highest, as measured with gloo in a lab with ports of 1 Gbit/s, where those
# named had 40 Mbit/s. With three hosts gloo's ring goes node1 -> node3 -> node2 -> node1.
EVEN = (4.98, 5.00, 5.01, 5.02, 5.05, 5.15)
QUEUED = (4.87, 5.09, 5.47, 6.11, 6.73, 7.08)
"""Into the queue of a capped receiver."""
BURSTS = (8.39, 12.30, 16.63, 20.04, 20.05, 20.43)

LAB = {
    "node2 both ways": {
        "node1": (BURSTS, EVEN),
        "node2": (EVEN, EVEN),
        "node3": (QUEUED, BURSTS),
    },
    "node2 sends": {"node1": (BURSTS, EVEN), "node2": (EVEN, BURSTS), "node3": (BURSTS, BURSTS)},
    "node2 receives": {
        "node1": (BURSTS, BURSTS),
        "node2": (BURSTS, EVEN),
        "node3": (QUEUED, BURSTS),
    },
    "all": dict.fromkeys(("node1", "node2", "node3"), (EVEN, EVEN)),
    "node2 of two": {"node1": (QUEUED, EVEN), "node2": (EVEN, EVEN)},
    "both of two": {"node1": (EVEN, EVEN), "node2": (EVEN, EVEN)},
    "node3 and node4 of four": {
        "node1": (QUEUED, BURSTS),
        "node2": (BURSTS, EVEN),
        "node3": (EVEN, EVEN),
        "node4": (EVEN, EVEN),
    },
    "none of two": {"node1": (QUEUED, QUEUED), "node2": (QUEUED, QUEUED)},
}


def ports(case, factor=1.0):
    def rates(values):
        return np.repeat(factor * 1e6 * np.array(values), 5)

    return [
        PortRates(
            host,
            rates=dict.fromkeys(("sent", "received"), np.full(30, 3e6)),
            bursts={"sent": rates(sent), "received": rates(received)},
        )
        for host, (sent, received) in LAB[case].items()
    ]


@pytest.mark.parametrize("factor", [1.0, 25.0])
@pytest.mark.parametrize(
    ("case", "hosts", "is_sure"),
    [
        ("node2 both ways", ["node2"], True),
        ("node2 of two", ["node2"], False),
        ("node3 and node4 of four", ["node3", "node4"], True),
    ],
)
def test_the_capped_host_is_named(case, hosts, is_sure, factor):
    found = cap_of(ports(case, factor))

    assert (list(found.hosts), found.is_sure) == (hosts, is_sure)
    assert found.rate == pytest.approx(factor * CAP, rel=0.02)


def test_which_end_of_a_slow_hop_it_is_cannot_be_told_but_an_even_sender_is_looked_at_first():
    """A receiver with little room for a queue makes its sender as even as a port at its limit."""
    found = cap_of(ports("node2 sends"))

    assert (list(found.hosts), found.hop) == ([], ("node2", "node1"))
    assert found.is_sure
    assert found.has_even_sender


def test_a_sender_whose_port_passes_more_is_not_blamed_for_the_way_behind_it():
    found = cap_of(ports("node2 receives"))

    assert (list(found.hosts), found.hop) == ([], ("node3", "node2"))


@pytest.mark.parametrize("case", ["all", "both of two", "none of two"])
def test_no_host_is_named_where_all_look_alike(case):
    found = cap_of(ports(case))

    assert (list(found.hosts), found.hop) == ([], None)
    assert found.reason


def old_record(node1, node2, node3, readings=40):
    """Means of whole readings alone; the highest of each port in MB/s, sent and received."""
    spread = np.linspace(0.6, 1.0, readings)
    return [
        PortRates(
            host,
            rates={"sent": 1e6 * sent * spread, "received": 1e6 * received * spread},
            bursts={"sent": np.empty(0), "received": np.empty(0)},
        )
        for host, (sent, received) in {"node1": node1, "node2": node2, "node3": node3}.items()
    ]


def test_whole_readings_name_a_host_where_they_differ_clearly():
    found = cap_of(old_record((5.7, 5.0), (4.99, 4.99), (5.0, 5.7)))

    assert list(found.hosts) == ["node2"]
    assert (found.is_sure, found.is_measured) == (False, False)


@pytest.mark.parametrize("other", [4.9, 5.2])
def test_whole_readings_that_hardly_differ_name_nobody(other):
    found = cap_of(old_record((other, 5.0), (4.99, 4.99), (5.0, other)))

    assert list(found.hosts) == []


def test_too_few_readings_say_nothing():
    assert cap_of(old_record((5.7, 5.0), (4.99, 4.99), (5.0, 5.7), readings=4)) is None
    assert cap_of(ports("node2 both ways")[:1]) is None


class Sensors:
    """The readings of one host, a second apart."""

    host = "node1"

    def __init__(self, sent_totals, peaks):
        seconds = np.arange(len(sent_totals), dtype=float)
        values = {
            "network/eth0/sent_bytes_total": np.array(sent_totals),
            "network/eth0/received_bytes_total": np.array(sent_totals),
            "network/eth0/sent_peak_bytes_per_s": np.array(peaks),
        }
        self.readings = [Table({"at": 100 + seconds, "monotonic_at": seconds}, {"values": values})]


def test_readings_count_that_lie_within_the_steps_and_were_busy():
    sensors = Sensors([0.0, 10.0, 20.0, 20.0, 90.0, 100.0], [0.0, 11.0, 12.0, 0.0, 99.0, 13.0])
    found = port_rates(sensors, "eth0", np.array([[100.0, 103.5], [103.9, 105.0]]))

    assert found.rates["sent"].tolist() == [10.0, 10.0, 10.0]
    assert found.bursts["sent"].tolist() == [11.0, 12.0, 13.0]
    assert len(found.bursts["received"]) == 0
