import numpy as np
import pytest
from unit.diagnosis.foreseen_run import GBIT_S, HOSTS, forecast
from unit.report.fake_run import started, step

from dragoman.diagnosis.speed.link_watch import MOST_STEPS, LinkWatch
from dragoman.telemetry.events import SensorReading, Stamped

INTERFACES = dict.fromkeys(HOSTS, "eth0")
CAP = 5e6


class Played:
    """Three hosts in a ring; host-1 may be capped, some rank may be late or slow."""

    def __init__(self, **changes):
        self.watch = LinkWatch(forecast(**changes), INTERFACES)
        self.number = 0
        self.lines = []
        for rank in range(3):
            self.take(rank, started(rank=rank, ranks=3))

    def take(self, rank, event):
        line = self.watch.take(rank, Stamped(0.0, 0.0, event))
        self.lines += [line] if line else []

    def steps(self, count, network_s=0.05, compute_s=0.9, late_s=(0.0, 0.0, 0.0), capped=False):
        for _ in range(count):
            self.number += 1
            for rank in range(3):
                own_s = compute_s + late_s[rank]
                communication_s = max(late_s) - late_s[rank] + network_s
                parts = {"forward": own_s / 3, "backward": 2 * own_s / 3}
                parts |= {"communication": communication_s, "agreement": 0.001}
                seconds = sum(parts.values())
                for _ in range(max(1, round(seconds))):
                    self.take(rank, SensorReading(self.values(rank, capped)))
                self.take(rank, step(self.number, seconds, parts_s=parts, ready_s=own_s))

    def values(self, rank, capped):
        sent = received = GBIT_S
        if capped:  # as measured in a lab: see test_capped.py
            sent = {0: 4 * CAP, 1: CAP, 2: 1.1 * CAP}[rank]
            received = {0: CAP, 1: CAP, 2: 4 * CAP}[rank]
        return {
            "network/eth0/sent_peak_bytes_per_s": sent,
            "network/eth0/received_peak_bytes_per_s": received,
        }


def test_steps_as_forecast_are_not_worth_a_line():
    played = Played()
    played.steps(100)
    assert played.lines == []


def test_a_link_that_becomes_slower_is_told_once_with_its_host_and_then_that_it_is_over():
    played = Played()
    played.steps(40)
    played.steps(30, network_s=8.0, capped=True)
    (line,) = played.lines
    assert "host-1" in line
    assert "host-0" not in line
    assert "host-2" not in line
    assert "40 Mbit/s" in line
    assert "1 Gbit/s" in line
    played.steps(60)
    assert len(played.lines) == 2
    assert "as forecast" in played.lines[1]


def test_one_slow_window_is_no_news():
    played = Played()
    played.steps(40)
    played.steps(10, network_s=8.0, capped=True)
    played.steps(40)
    assert played.lines == []


def test_a_network_that_is_slower_without_a_capped_port_names_nobody():
    played = Played()
    played.steps(40, network_s=8.0)
    (line,) = played.lines
    assert "network" in line
    assert not any(host in line for host in HOSTS)


def test_a_link_that_was_as_slow_before_has_not_become_slower():
    played = Played(rate=CAP)
    played.steps(40, network_s=8.0, capped=True)
    (line,) = played.lines
    assert "become slower" not in line


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"compute_s": 3.0}, "computes"), ({"late_s": (0.0, 0.0, 4.0)}, "slowest worker")],
)
def test_what_is_not_the_network_is_not_called_the_network(changes, word):
    played = Played()
    played.steps(40, **changes)
    (line,) = played.lines
    assert word in line
    assert "network" not in line


def test_sharded_states_whose_waiting_nobody_knows_break_nothing():
    played = Played()
    for number in range(1, 60):
        for rank in range(3):
            parts = {"forward": 1.0, "backward": 2.0, "agreement": 0.001}
            played.take(rank, step(number, 3.0, parts_s=parts, ready_s=3.0))
    (line,) = played.lines
    assert "computes" in line


def test_ranks_whose_records_do_not_come_fill_no_memory():
    played = Played()
    for number in np.arange(1, 3 * MOST_STEPS):
        played.take(0, step(int(number), 1.0, parts_s={"forward": 1.0}, ready_s=1.0))
    assert len(played.watch._steps) <= MOST_STEPS + 2
    assert played.lines == []
