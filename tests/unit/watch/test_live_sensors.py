from dragoman.watch.live_rank import WINDOW_S
from dragoman.watch.live_sensors import MOST_READINGS, LiveSensors, Reading, shown


def sensors_of(seconds, attempt=1, rank=0, host="node1"):
    sensors = LiveSensors()
    add(sensors, seconds, attempt, rank, host)
    return sensors


def add(sensors, seconds, attempt=1, rank=0, host="node1"):
    for at in seconds:
        sensors.add(attempt, rank, host, Reading(at, at, {"cpu/percent": 50.0}))


def test_only_sensors_of_the_curves_are_kept():
    values = {"cpu/percent": 1.0, "cpu/3/percent": 2.0, "network/eth0/sent_bytes_total": 3.0}
    assert shown(values) == {"cpu/percent": 1.0, "network/eth0/sent_bytes_total": 3.0}


def test_time_between_readings_needs_two():
    assert sensors_of([5.0]).every_s(1, 0) is None
    assert sensors_of([5.0, 7.5]).every_s(1, 0) == 2.5
    assert sensors_of([5.0, 7.5]).every_s(1, 1) is None


def test_a_file_that_is_read_anew_begins_anew():
    sensors = sensors_of([5.0, 7.5])
    sensors.forget(1, 0)
    sensors.forget(1, 9)
    assert sensors.curves(set()) == []


def test_older_attempts_are_forgotten():
    sensors = sensors_of([5.0], attempt=1, host="old")
    add(sensors, [6.0], attempt=2, host="new")
    sensors.keep([2, 3])
    assert {curve.host for curve in sensors.curves({"old", "new"})} == {"new"}


def test_curves_end_with_the_newest_reading_of_any_host():
    sensors = sensors_of([0.0, 1.0], host="gone")
    add(sensors, [WINDOW_S + 10.0], rank=1, host="there")
    assert [curve.host for curve in sensors.curves({"gone", "there"})] == ["there"]


def test_readings_are_bounded_however_often_they_come():
    sensors = sensors_of([0.1 * number for number in range(3 * MOST_READINGS)])
    [curve] = sensors.curves({"node1"})
    assert curve.at[0] >= 0.1 * 2 * MOST_READINGS - 10.0


def test_a_rank_without_a_host_has_its_number():
    add(sensors := LiveSensors(), [5.0], rank=3, host="")
    add(sensors, [5.0], rank=4, host="node1")
    assert "the host of rank 3" in {curve.host for curve in sensors.curves({"node1"})}
