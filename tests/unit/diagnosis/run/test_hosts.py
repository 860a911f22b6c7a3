import math

import numpy as np
import pytest
from unit.diagnosis.speed_run import new_run, read
from unit.report.fake_run import started, step

from dragoman.diagnosis.run.hosts import host_of
from dragoman.telemetry.events import SensorReading, SensorsFound


@pytest.fixture
def host(tmp_path):
    """Steps from 10 s to 20 s; a counter that grows by 100 a second and begins anew at 15 s."""
    sensors = SensorsFound("host-0", [], {}, cores=8, link_bytes_per_s={"eth0": 1.25e8})
    readings = [
        SensorReading(
            {
                "network/eth0/sent_bytes_total": 100.0 * (second if second < 15 else second - 15),
                "network/lo/sent_bytes_total": 900.0 * second,
                "cpu/percent": 50.0 if 9 <= second <= 20 else 0.0,
            }
        )
        for second in range(30)
    ]
    run = new_run(tmp_path)
    events = [
        *((0.0, event) for event in (started(), sensors)),
        *((float(second), reading) for second, reading in enumerate(readings)),
        *((9.0 + number, step(number)) for number in range(1, 12)),
    ]
    run.with_events(sorted(events, key=lambda event: event[0]))
    return read(run).hosts["host-0"]


def test_only_what_was_read_during_steps_is_taken(host):
    assert host.mean("cpu/percent") == 50.0
    assert len(host.levels("cpu/percent")) == 12


def test_a_counter_that_begins_anew_has_lost_nothing_else(host):
    name = "network/eth0/sent_bytes_total"
    assert np.unique(host.rates(name)).tolist() == [100.0]
    assert host.gained(name) == 10 * 100.0
    assert host.reading_s == 1.0


def test_what_was_never_read_is_not_known(host):
    assert math.isnan(host.mean("gpu/0/percent"))
    assert host.gained("gpu/0/percent") == 0.0
    assert math.isnan(host.port_rate("eth1"))


def test_devices_and_what_they_announce(host):
    assert host.devices("network", "sent_bytes_total") == ["eth0", "lo"]
    assert host.cores == 8
    assert host.port_rate("eth0") == 1.25e8


@pytest.mark.parametrize(("with_loopback", "busiest"), [(True, "lo"), (False, "eth0")])
def test_the_busiest_interface_has_sent_most(host, with_loopback, busiest):
    assert host.busiest_interface(with_loopback) == busiest


def test_a_host_that_nobody_has_named_is_that_of_its_rank(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, step(1))])

    assert host_of(read(run).attempts[0], 0) == "the host of rank 0"
