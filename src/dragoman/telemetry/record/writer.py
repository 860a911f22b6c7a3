"""Writes events from a thread of its own, so that no disk ever holds up a step.

When the disk is slower than the run, or refuses, events are dropped and counted, never waited for.
The count is written as soon as something can be written again, and logged for people. A line is
written whole or is the last of the file: a kill at any moment leaves a file that can be read,
without the events of the last `REST_S` and those that the disk was busy with.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from dragoman.telemetry.events import Event, EventsDropped, Incident, Stamped, to_line

logger = logging.getLogger(__name__)

Exporter = Callable[[Stamped], None]

CAPACITY = 10_000
CLOSE_TIMEOUT_S = 10.0
REST_S = 0.05
"""Between two writes, for runs of very short steps: waking the thread costs more than writing.
Steps that take longer are each written at once."""
AT_ONCE = 1000
"""No more events than this are in work at a time."""
EMIT_DROPS_EVERY_S = 1.0
WARN_EVERY_S = 60.0
"""About the same failure, which may come and go many times a second."""


class EventWriter:
    """`emit` returns at once. Exporters receive the same events on the writer's thread.

    An exporter that fails is reported once, as an incident in the file and in the log, until it
    works again. One that may have to wait, for a network say, belongs on a thread of its own.
    """

    def __init__(self, path: Path, exporters: Sequence[Exporter] = ()) -> None:
        self._exporters = exporters
        self._failing: set[int] = set()
        self._path = path
        self._file: IO[bytes] | None = None
        self._waiting: deque[Stamped] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._drop_lock = threading.Lock()
        self._dropped = self._emitted_drops = 0
        self._emit_drops_at = 0.0
        self._refused_at_drops: int | None = None
        """How many were dropped before the file could no longer be written; None: it can be."""
        self._warned_at: dict[str, float] = {}
        self._step = 0
        self._thread = threading.Thread(target=self._work, name="events", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many events the file does not hold."""
        return self._dropped

    def emit(self, event: Event) -> None:
        if len(self._waiting) >= CAPACITY:
            self._drop(1)
            return
        self._waiting.append(Stamped(time.time(), time.monotonic(), event))
        if not self._wake.is_set():  # while the thread writes or rests, this is all there is to do
            self._wake.set()

    def close(self) -> None:
        """Writes what is waiting, for a bounded time, and logs how much is missing."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        self._thread.join(CLOSE_TIMEOUT_S)
        if missing := self._dropped + len(self._waiting):
            logger.warning(f"{self._path}: {missing:,} event(s) of this attempt are missing")

    def _work(self) -> None:
        while True:
            self._wake.clear()
            closing = self._closing  # read before the queue, so that nothing is left in it
            rested_at = time.monotonic() + REST_S
            events = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            self._write(events)
            for stamped in events:
                self._step = getattr(stamped.event, "step", self._step)
                self._export(stamped)
            self._emit_drops(at_once=closing)
            if not self._waiting:
                if closing:
                    break
                self._wake.wait()
                if not self._closing and (left_s := rested_at - time.monotonic()) > 0:
                    time.sleep(left_s)
        if self._file:
            self._file.close()

    def _write(self, events: Sequence[Stamped]) -> None:
        """Writes whole lines, in one go. What does not reach the file is counted as dropped."""
        lines = []
        for stamped in events:
            try:
                lines.append(to_line(stamped).encode())
            except (TypeError, ValueError):  # holds something that is not for JSON
                self._drop(1)
        if not lines:
            return
        data = b"".join(lines)
        written = 0
        try:
            if self._file is None:
                self._file = _open_at_a_new_line(self._path)
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            self._note_refusal(error.strerror or str(error))
            self._drop(len(lines) - data[:written].count(b"\n"))
            if self._file:
                with contextlib.suppress(OSError):
                    self._file.close()
            self._file = None  # opened anew, it also gets over a torn line
        else:
            self._note_success()

    def _note_refusal(self, reason: str) -> None:
        if self._refused_at_drops is None:
            what = f"{self._path}: cannot be written ({reason}); training goes on, and its events"
            if self._warn_seldom("file", f"{what} are lost until it can be"):
                self._refused_at_drops = self._dropped

    def _note_success(self) -> None:
        if self._refused_at_drops is not None:
            lost = self._dropped - self._refused_at_drops
            logger.warning(f"{self._path}: can be written again; {lost:,} event(s) were lost")
            self._refused_at_drops = None

    def _warn_seldom(self, about: str, text: str) -> bool:
        """Returns False where it was warned about not long ago."""
        now = time.monotonic()
        if now < self._warned_at.get(about, 0.0):
            return False
        self._warned_at[about] = now + WARN_EVERY_S
        logger.warning(text)
        return True

    def _export(self, stamped: Stamped) -> None:
        for number, exporter in enumerate(self._exporters):
            try:
                exporter(stamped)
            except Exception as error:
                if number not in self._failing:
                    self._failing.add(number)
                    name = getattr(exporter, "__name__", type(exporter).__name__)
                    what = f"{name} cannot follow the events: {type(error).__name__}: {error}"
                    self._warn_seldom(name, what)
                    incident = Incident(self._step, "telemetry", what)
                    self._write([Stamped(time.time(), time.monotonic(), incident)])
            else:
                self._failing.discard(number)

    def _emit_drops(self, at_once: bool) -> None:
        dropped = self._dropped
        if dropped == self._emitted_drops or not (
            at_once or time.monotonic() >= self._emit_drops_at
        ):
            return
        event = EventsDropped(dropped - self._emitted_drops, dropped)
        self._emit_drops_at = time.monotonic() + EMIT_DROPS_EVERY_S
        self._write([Stamped(time.time(), time.monotonic(), event)])
        if self._file is not None:
            self._emitted_drops = dropped
        else:
            self._drop(-1)  # the count itself is not one of the events that are missing

    def _drop(self, count: int) -> None:
        with self._drop_lock:
            self._dropped += count


def _open_at_a_new_line(path: Path) -> IO[bytes]:
    with contextlib.suppress(FileExistsError):  # no folder: opening says so in clearer words
        path.parent.mkdir(parents=True, exist_ok=True)
    # Without a buffer: what was written has left the process, and a kill cannot take it back.
    file = path.open("a+b", buffering=0)
    if end := file.seek(0, 2):
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file
