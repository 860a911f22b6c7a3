import os
import threading

from dragoman.telemetry.events import SensorReading, SensorsFound, Stamped, from_line, to_line
from dragoman.telemetry.record.sampler import (
    RETRY_EVERY_S,
    Sampler,
    sampling,
    sensors_of_host,
)
from dragoman.telemetry.sensors.sensor import AbsentError, Sensor


class Steady(Sensor):
    def __init__(self):
        super().__init__()
        self.about, self.cores = {"cpu": "a fast one"}, 8
        self.link_bytes_per_s = {"eth0": 125e6}

    def read(self):
        return {"cpu/percent": 5.0}


class Flaky(Sensor):
    """Reads while it may."""

    works = True

    def __init__(self):
        super().__init__()
        if not Flaky.works:
            raise AbsentError("unplugged")

    def read(self):
        if not Flaky.works:
            raise OSError("it fell off")
        return {"flaky/value": 1.0}


def test_absent_sensors_are_told_once_and_the_others_read():
    def absent():
        raise AbsentError("no such thing")

    def broken():
        raise ZeroDivisionError

    events = []
    sampler = Sampler(events.append, {"cpu": Steady, "gpu": absent, "odd": broken}, "node1")
    for second in range(3):
        sampler.sample(float(second))
    assert events == [
        SensorsFound(
            "node1",
            ["cpu"],
            {"gpu": "no such thing", "odd": "ZeroDivisionError"},
            {"cpu": "a fast one"},
            8,
            {"eth0": 125e6},
        ),
        *[SensorReading({"cpu/percent": 5.0})] * 3,
    ]


def test_a_sensor_that_fails_is_absent_until_it_is_tried_again():
    events = []
    sampler = Sampler(events.append, {"cpu": Steady, "flaky": Flaky}, "node1")
    sampler.sample(0.0)
    Flaky.works = False
    for second in (1.0, 2.0, 1.0 + RETRY_EVERY_S):
        sampler.sample(second)
    Flaky.works = True
    sampler.sample(2.0 + RETRY_EVERY_S)
    sampler.sample(1.0 + 2 * RETRY_EVERY_S)
    told = [event for event in events if isinstance(event, SensorsFound)]
    assert [event.absent for event in told] == [{}, {"flaky": "it fell off"}, {}]
    read = [len(event.values) for event in events if isinstance(event, SensorReading)]
    assert read == [2, 1, 1, 1, 1, 2]


def test_a_thread_samples_until_the_context_ends():
    enough = threading.Event()
    events = []

    def emit(event):
        events.append(event)
        if len(events) == 4:
            enough.set()

    with sampling(emit, {"cpu": Steady}, "node1", every_s=0.001):
        assert enough.wait(30)
    assert "sensors" not in {thread.name for thread in threading.enumerate()}
    assert isinstance(events[0], SensorsFound)
    assert all(isinstance(event, SensorReading) for event in events[1:])


def test_an_interval_of_zero_means_no_sensors():
    with sampling(lambda event: 1 / 0, {"cpu": Steady}, "node1", every_s=0):
        assert "sensors" not in {thread.name for thread in threading.enumerate()}


def test_the_sensors_of_this_host_give_numbers_that_survive_a_line(tmp_path):
    events = []
    Sampler(events.append, sensors_of_host(tmp_path, {0: os.getpid()}), "here").sample(0.0)
    found, reading = events
    assert {"processor", "memory", "disk", "network", "tcp"} <= set(found.present)
    assert set(found.present) | set(found.absent) >= {"gpu"}
    assert found.cores == os.cpu_count()
    assert {"cpu/percent", "memory/used_bytes", "disk/run_free_bytes"} <= set(reading.values)
    for event in events:
        stamped = Stamped(1.0, 2.0, event)
        assert from_line(to_line(stamped)) == stamped
