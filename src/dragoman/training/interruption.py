"""Being asked to stop: signals and notices become a question that the loop asks after each step."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """`asked` and `reason` are read by the loop; the first reason stays."""

    asked = False
    reason = ""

    def request(self, reason: str) -> None:
        """From any thread or signal handler.

        Without a lock, which a handler could not wait for: it interrupts the very thread that may
        hold it. Two requests at once may each be the first; either reason is true then.
        """
        if not self.asked:
            self.reason = reason
            self.asked = True  # last, so that whoever sees it finds the reason

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.request(f"asked to stop by {signal.Signals(number).name}")


def common_reason(told: Sequence[tuple[str, str]]) -> str:
    """Why a run stops: `told` is the host and the reason of each rank, empty where none was asked.

    A notice stands before signals: once a host is about to be taken away, other things end too.
    """
    asked = [(rank, host, reason) for rank, (host, reason) in enumerate(told) if reason]
    if not asked:
        return "asked to stop"
    signals = {reason for _, _, reason in asked if reason.startswith("asked to stop by ")}
    rank, host, reason = next((each for each in asked if each[2] not in signals), asked[0])
    if reason in signals and len(asked) == len(told) and len(signals) == 1:
        return reason  # all were asked alike, so that nobody has to be named
    return f"rank {rank} on {host}: {reason}" if len(told) > 1 else reason


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
