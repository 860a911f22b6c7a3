"""Exports events on a thread of its own, to services that may have to wait for a network."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from dragoman.telemetry.events import Stamped, StepDone

logger = logging.getLogger(__name__)

CAPACITY = 1000
SEND_EVERY_S = 1.0
STEPS_EVERY_S = 1.0
"""A service is shown a step this often; the run's own files have all of them."""
CLOSE_TIMEOUT_S = 20.0


class Service(Protocol):
    def send(self, events: Sequence[Stamped]) -> None: ...
    def close(self) -> None: ...


class BackgroundExporter:
    """Opens the service and gives it events. Where it is slow or fails, it misses some."""

    def __init__(self, name: str, open_service: Callable[[], Service]) -> None:
        self._name, self._open = name, open_service
        self._next_step_at = 0.0
        self._has_warned = False
        self._waiting: deque[Stamped] = deque()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def __call__(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, StepDone):
            if stamped.monotonic_at < self._next_step_at:
                return
            self._next_step_at = stamped.monotonic_at + STEPS_EVERY_S
        if len(self._waiting) < CAPACITY:
            self._waiting.append(stamped)

    def close(self) -> None:
        """Sends what is waiting, for a bounded time."""
        self._closing.set()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _work(self) -> None:
        try:
            service = self._open()
        except Exception as error:  # whatever a service does, the run goes on
            logger.warning(f"{self._name} does not get this run's figures: {first_line_of(error)}")
            return
        is_closing = False
        while not is_closing:
            is_closing = self._closing.wait(SEND_EVERY_S)
            if events := [self._waiting.popleft() for _ in range(len(self._waiting))]:
                self._try(partial(service.send, events))
        self._try(service.close)

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            if not self._has_warned:
                self._has_warned = True
                logger.warning(
                    f"{self._name} misses some of this run's figures: {first_line_of(error)}"
                )


def first_line_of(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
