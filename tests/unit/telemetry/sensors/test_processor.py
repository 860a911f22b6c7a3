import os
import subprocess
import sys

from dragoman.telemetry.sensors.processor import Processor


def test_the_processor_and_this_process_are_seen_working():
    processor = Processor({3: os.getpid()})
    before = os.times()
    while sum(os.times()[:2]) - sum(before[:2]) < 0.2:
        pass
    values = processor.read()
    assert 0 < values["cpu/percent"] <= 100
    assert 0 <= values["cpu/steal_percent"] <= 100
    assert values["rank/3/cpu_percent"] > 0
    assert processor.cores == os.cpu_count()


def test_a_rank_that_is_gone_is_missing_and_the_rest_is_read():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    sensor = Processor({0: process.pid})
    values = sensor.read()
    assert values
    assert "rank/0/cpu_percent" not in values
    assert "rank/0/cpu_percent" in sensor.missing
