import torch

from dragoman.sync.stopwatch import Stopwatch


def test_a_processor_is_timed_by_the_hosts_clock():
    watch = Stopwatch(torch.device("cpu"))
    begin, end = watch.mark(), watch.mark()
    assert not watch.reads_late
    assert 0 <= watch.seconds(begin, end) < 60


def test_a_gpu_is_timed_by_events_in_its_queue_which_are_read_later(monkeypatch):
    """With a queue of our own in the place of CUDA's: marks have no time until it is worked off."""
    queue = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing
            self.at_ms = None

        def record(self, stream):
            assert stream == "stream of cuda:1"
            queue.append(self)

        def elapsed_time(self, end):
            return end.at_ms - self.at_ms

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    watch = Stopwatch(torch.device("cuda", 1))
    assert watch.reads_late
    begin, end = watch.mark(), watch.mark()
    assert [begin, end] == queue
    begin.at_ms, end.at_ms = 1000.0, 1250.0
    assert watch.seconds(begin, end) == 0.25
