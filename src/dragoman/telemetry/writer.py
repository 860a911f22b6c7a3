"""Writes events from a thread of its own, so that no disk ever holds up a step.

When the disk is slower than the run, or fails, events are dropped and counted, never waited for.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from dragoman.errors import StorageError
from dragoman.telemetry.events import Event, Stamped, to_line

Mirror = Callable[[Stamped], None]

CAPACITY = 10_000
CLOSE_TIMEOUT_S = 10.0


class EventWriter:
    """`emit` returns at once. Mirrors receive the same events on the writer's thread."""

    def __init__(self, path: Path, mirrors: Sequence[Mirror] = ()) -> None:
        self.dropped = 0
        self._mirrors = mirrors
        self._path = path
        self._file: TextIO | None = None
        self._queue: queue.Queue[Stamped | None] = queue.Queue(CAPACITY)
        self._thread = threading.Thread(target=self._write_all, name="events", daemon=True)
        self._thread.start()

    def emit(self, event: Event) -> None:
        try:
            self._queue.put_nowait(Stamped(time.time(), time.monotonic(), event))
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Write what is waiting, for a bounded time."""
        try:
            self._queue.put(None, timeout=CLOSE_TIMEOUT_S)
        except queue.Full:
            return
        self._thread.join(CLOSE_TIMEOUT_S)

    def _write_all(self) -> None:
        while (stamped := self._queue.get()) is not None:
            for receive in (self._write, *self._mirrors):
                try:
                    receive(stamped)
                except (OSError, StorageError):
                    self.dropped += 1
        if self._file:
            self._file.close()

    def _write(self, stamped: Stamped) -> None:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8")
        self._file.write(to_line(stamped))
        if self._queue.empty():
            self._file.flush()
