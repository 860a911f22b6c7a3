"""Being asked to stop: SIGTERM and SIGINT become a question that the loop asks after each step."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    asked = False

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


@contextmanager
def interruptions() -> Iterator[Interruption]:
    """While open, signals to stop only set a flag; afterwards they mean what they meant before."""
    interruption = Interruption()
    before = {
        number: signal.signal(number, interruption.receive)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
