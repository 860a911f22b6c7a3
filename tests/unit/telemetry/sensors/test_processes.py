import os
import subprocess
import sys

from dragoman.telemetry.sensors.processes import Processes


def test_this_process_is_seen_working_and_holding_memory():
    processes = Processes({3: os.getpid()})
    processes.read()
    before = os.times()
    while sum(os.times()[:2]) - sum(before[:2]) < 0.2:
        pass
    values = processes.read()
    assert values["rank/3/cpu_percent"] > 0
    assert values["rank/3/resident_bytes"] > 1e6


def test_a_rank_that_is_gone_is_missing_and_the_rest_is_read():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    sensor = Processes({0: process.pid, 1: os.getpid()})
    assert set(sensor.read()) == {"rank/1/cpu_percent", "rank/1/resident_bytes"}
    assert list(sensor.missing) == ["rank/0"]
