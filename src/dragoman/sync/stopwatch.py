"""How long a device works on something.

A GPU works through a queue: the host's clock tells when work was handed over, not when it was done.
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
        """A mark can be read only when the device has come to it."""

    def mark(self) -> Mark:
        """This moment, behind all work that was handed over so far."""
        if not self.reads_late:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def seconds(self, begin: Mark, end: Mark) -> float:
        """Between two marks that the device has passed."""
        if isinstance(begin, float) and isinstance(end, float):
            return end - begin
        assert isinstance(begin, torch.cuda.Event)
        assert isinstance(end, torch.cuda.Event)
        return float(begin.elapsed_time(end)) / 1000.0
