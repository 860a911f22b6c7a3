import os

from dragoman.telemetry.sensors.processor import Processor


def test_the_processor_is_seen_working():
    processor = Processor()
    before = os.times()
    while sum(os.times()[:2]) - sum(before[:2]) < 0.2:
        pass
    values = processor.read()
    assert 0 < values["cpu/percent"] <= 100
    assert 0 <= values["cpu/steal_percent"] <= 100
    assert processor.cores == os.cpu_count()
