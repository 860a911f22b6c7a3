"""Requests to stop, from signals and cloud notices; the loop reads them once a step."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Literal, NamedTuple

from dragoman.console import WaitLog
from dragoman.distributed.stop_reason import reason_of_signal, stop_signals, told_reason
from dragoman.errors import NamedRank

POLL_S = 0.02
"""Between two looks for a request, while something else is waited for."""


class StopRequest(NamedTuple):
    cause: Literal["signal", "notice"]
    reason: str


class Interruption:
    """A flag that any thread or signal handler may set; the first request stays."""

    def __init__(self) -> None:
        self.request: StopRequest | None = None
        self.signals = 0
        """How many have come; one after the last step is meant for what is still done then."""

    @property
    def is_requested(self) -> bool:
        return self.request is not None

    def stop(self, reason: str) -> None:
        """Asks the run to stop after its step, save and end, as a signal would.

        Without a lock, which a handler could not wait for: it interrupts the very thread that may
        hold it. Two requests at once may each be the first; either reason is true then.
        """
        self.request = self.request or StopRequest("signal", reason)

    def notice(self, reason: str) -> None:
        """Asks the run to stop because the cloud will take this host away."""
        self.request = self.request or StopRequest("notice", reason)

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Stops for the reason that our agent gives, else for the signal itself."""
        self.signals += 1
        self.stop(told_reason() or reason_of_signal(number))


class StoppedError(Exception):
    """Ranks were asked to stop before their first step, when there is nothing to save.

    All of them raise it, and none reports it as a failure.
    """


def unless_stopped(work: Callable[[], object], what: str, interruption: Interruption) -> None:
    """Does work that waits for the network, and may do so for hours; returns before it is done
    where a stop is requested. `what` it waits for is logged now and then.

    In a thread, which is left behind then: neither a signal nor anything else ends a request.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="unless_stopped", daemon=True)
    log = WaitLog()
    thread.start()
    while thread.is_alive() and not interruption.is_requested:
        log.show(lambda: what)
        thread.join(POLL_S)
    if failures:
        raise failures[0]


class Stop(NamedTuple):
    """Why all ranks stop, and which of them was asked; None: all of them."""

    request: StopRequest
    asked: NamedRank | None


def common_stop(hosts: Sequence[str], requests: Sequence[StopRequest | None]) -> Stop:
    """Returns why a run stops, from the host and the request of each rank.

    A notice comes before signals: once a host is about to be taken away, other things end too.
    """
    found = [(rank, request) for rank, request in enumerate(requests) if request]
    if not found:
        return Stop(StopRequest("signal", "asked to stop"), None)
    rank, request = next((each for each in found if each[1].cause == "notice"), found[0])
    if request.cause == "signal" and set(requests) == {request}:
        return Stop(request, None)
    return Stop(request, NamedRank(rank, hosts[rank]))


@contextmanager
def interruptions() -> Iterator[Interruption]:
    """While open, signals to stop only set a flag; afterwards they mean what they meant before.

    For the main thread of a program alone: Python allows handlers nowhere else.
    """
    interruption = Interruption()
    before = {number: signal.signal(number, interruption.receive) for number in stop_signals()}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
