import pytest

from dragoman.telemetry.sensors.sensor import Sensor


def test_a_sensor_lacks_nothing_and_knows_nothing_until_it_says_so():
    first, second = Sensor(), Sensor()
    first.missing["cpu/percent"] = "why"
    assert (second.missing, second.about, second.cores, second.link_bytes_per_s) == (
        {},
        {},
        None,
        {},
    )
    with pytest.raises(NotImplementedError):
        first.read()
