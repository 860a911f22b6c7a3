import os
import subprocess
import sys

from dragoman.telemetry.sensors.memory import Memory


def test_memory_of_host_and_rank():
    values = Memory({0: os.getpid()}).read()
    assert 0 < values["rank/0/resident_bytes"] < values["memory/total_bytes"]
    assert values["memory/available_bytes"] <= values["memory/total_bytes"]
    assert values["memory/swap_used_bytes"] >= 0


def test_a_rank_that_is_gone_is_missing_and_the_rest_is_read():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    sensor = Memory({0: process.pid})
    values = sensor.read()
    assert values
    assert "rank/0/resident_bytes" not in values
    assert "rank/0/resident_bytes" in sensor.missing
