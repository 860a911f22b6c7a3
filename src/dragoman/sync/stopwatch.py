"""Measures how long a device works on something.

A GPU works through a queue: the host's clock shows when work was queued, not when it was done.
There, marks are events in the queue, and are read when the host has waited for the device anyway.
"""

import time
from typing import TypeAlias

import torch

Mark: TypeAlias = float | torch.cuda.Event


class Stopwatch:
    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.reads_late = device.type == "cuda"
        """A mark can be read only after the device has reached it."""

    def mark(self) -> Mark:
        """Marks this moment, after all work that was queued so far."""
        if not self.reads_late:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def seconds(self, begin: Mark, end: Mark) -> float:
        """Returns the seconds between two marks that the device has passed."""
        if isinstance(begin, float) and isinstance(end, float):
            return end - begin
        assert isinstance(begin, torch.cuda.Event)
        assert isinstance(end, torch.cuda.Event)
        return float(begin.elapsed_time(end)) / 1000.0
