import math

import pytest
from unit.diagnosis.ring_run import CAP, ring
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import GBIT_S, WIRE_BYTES, traffic_of

from dragoman.diagnosis.speed.capped import WAYS
from dragoman.diagnosis.speed.causes import causes_of, others_take, slowed_hosts
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.telemetry.events import SensorReading, SensorsFound


def causes(facts):
    speed = speed_of(facts)
    return causes_of(facts, speed, speed.bottleneck)


def test_the_capped_host_and_its_rate_are_found(tmp_path):
    found = causes(ring(tmp_path))

    assert list(found.cap.hosts) == ["host-1"]
    assert found.at_most == pytest.approx(CAP)
    assert found.bad is None


def test_a_link_that_is_slow_now_and_then_is_judged_by_its_slow_steps(tmp_path):
    found = causes(ring(tmp_path, lambda number: None if number % 4 else 1))

    assert found.bad_for == "the network"
    assert found.bad.step_share == pytest.approx(0.25, abs=0.02)
    assert list(found.cap.hosts) == ["host-1"]
    assert found.at_most == pytest.approx(CAP)


def test_without_fast_moments_the_rate_is_bounded_by_the_waiting(tmp_path):
    run = write_steps(
        new_run(tmp_path), lambda *_: with_parts(communication=2.0), more=traffic_of()
    )
    found = causes(read(run))

    assert found.cap is None
    assert found.at_most == pytest.approx(WIRE_BYTES / 2.0)


def test_a_network_that_nobody_waits_for_has_no_limit(tmp_path):
    found = causes(read(write_steps(new_run(tmp_path), lambda *_: with_parts(), more=traffic_of())))

    assert math.isnan(found.at_most)
    assert not found.is_slow_network


def test_stalls_below_the_bound_are_found_too(tmp_path):
    """In the mean the network takes a tenth of the step, in every twelfth step most of it."""

    def parts(rank, number):
        return with_parts(communication=1.5 if number % 12 == 0 else 0.02)

    found = causes(read(write_steps(new_run(tmp_path), parts, steps=120, more=traffic_of())))

    assert found.found.verdict == "compute-bound"
    assert found.bad.step_share == pytest.approx(1 / 12, abs=0.005)
    assert found.is_slow_network


def test_hardware_that_gives_its_time_to_others_slows_a_host_whatever_its_ranks_use(tmp_path):
    """Neither its cores nor what its ranks use was recorded."""

    def beside(rank, end):
        values = {"cpu/percent": 100.0, "cpu/steal_percent": 45.0 * rank}
        found = SensorsFound(f"host-{rank}", ["processor"], {})
        return [(1.0, found), *((float(s), SensorReading(values)) for s in range(11, int(end)))]

    facts = read(write_steps(new_run(tmp_path), lambda *_: with_parts(), beside=beside))
    found = slowed_hosts(facts)

    assert list(found) == ["host-1"]
    assert others_take(found["host-1"]) == pytest.approx(0.45)


def test_waiting_shorter_than_a_burst_is_measured_by_its_bytes(tmp_path):
    """A tenth of a second holds computing as well: its rate is a mean, and no cap."""
    short = with_parts(communication=0.08, forward=0.01, backward=0.01, optimizer=0.0, rest=0.0)

    def sensors(rank, end):
        names = [f"network/eth0/{way}_bytes_total" for way in WAYS]
        peaks = [f"network/eth0/{way}_peak_bytes_per_s" for way in WAYS]
        values = [
            dict.fromkeys(names, CAP * s) | dict.fromkeys(peaks, CAP) for s in range(11, int(end))
        ]
        found = SensorsFound(f"host-{rank}", ["network"], {}, link_bytes_per_s={"eth0": GBIT_S})
        readings = ((11.0 + place, SensorReading(each)) for place, each in enumerate(values))
        return [(1.0, found), *readings]

    run = write_steps(
        new_run(tmp_path), lambda *_: short, steps=200, more=traffic_of(5e6, 5e6), beside=sensors
    )
    found = causes(read(run))

    assert found.found.verdict == "network-bound"
    assert found.at_most == pytest.approx(5e6 / 0.08)


def test_counters_that_see_no_gradients_tell_nothing_of_the_link(tmp_path):
    parts = with_parts(communication=2.0)
    run = write_steps(new_run(tmp_path), lambda *_: parts, more=traffic_of(sent=9e3))
    found = causes(read(run))

    assert found.found.verdict == "network-bound"
    assert not found.is_slow_network
    assert math.isnan(found.speed.link.carried)
