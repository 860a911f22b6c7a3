import pytest

from dragoman.telemetry.events import DeviceFound, SensorReading, Stamped, StepDone
from dragoman.telemetry.export.metrics import Metrics, Rates

COUNTS = {
    "source_tokens": 40,
    "target_tokens": 50,
    "positions": 100,
    "sequences": 5,
    "flops": 3e9,
}
STEP = StepDone(7, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, {"data": 0.1}, {}, COUNTS)


def test_counters_become_rates_from_the_second_reading_on():
    rates = Rates()
    assert rates.of(10.0, {"a_total": 100, "b": 5}) == {}
    assert rates.of(12.0, {"a_total": 150, "new_total": 7}) == {"a_per_s": 25}
    assert rates.of(13.0, {"a_total": 3}) == {}  # counted anew
    assert rates.of(13.0, {"a_total": 4}) == {}  # no time has passed


def test_a_step_gives_speed_padding_and_utilisation_of_a_known_device():
    metrics = Metrics()
    assert dict(metrics.of(Stamped(0.0, 0.0, DeviceFound("cuda:0", "", "bf16", 1e10, None)))) == {}
    found = dict(metrics.of(Stamped(1.0, 1.0, STEP)))
    assert metrics.step == 7
    assert found["speed/target tokens per second"] == 200
    assert found["batch/padding percent"] == pytest.approx(10)
    assert found["speed/model FLOPs utilisation percent"] == pytest.approx(60)
    assert found["step parts/data seconds"] == 0.1


def test_other_hosts_export_only_what_is_their_own():
    found = dict(Metrics("node2", of_rank_only=True).of(Stamped(1.0, 1.0, STEP)))
    assert "loss/train (smoothed, with dropout)" not in found
    assert "batch/padding percent" in found


def test_readings_carry_the_name_of_their_host():
    reading = SensorReading({"gpu/0/power_w": 250.0, "tcp/timeouts_total": 3})
    assert dict(Metrics("node1").of(Stamped(1.0, 1.0, reading))) == {"node1 gpu/0 power w": 250.0}
