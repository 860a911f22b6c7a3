import pytest

from dragoman.telemetry.sensors.sensor import Sensor


class Silent(Sensor):
    def read(self):
        return {}


def test_a_sensor_lacks_nothing_and_knows_nothing_until_it_says_so():
    first, second = Silent(), Silent()
    first.missing["cpu/percent"] = "why"
    assert (second.missing, second.about) == ({}, {})
    assert (second.cores, second.link_bytes_per_s) == (None, {})


def test_a_sensor_must_read_something():
    with pytest.raises(TypeError, match="read"):
        Sensor()
