"""What an agent sends home over ssh: messages, a sign of life, and the run's records as they grow.

Without torch.
"""

import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dragoman.cluster.job import Job
from dragoman.cluster.ssh import send_message
from dragoman.telemetry.replication import RecordTail

ALIVE_EVERY_S = 1.0
RELAYED = 10_000
"""Most messages that wait for a slow connection; beyond that, lines are dropped and counted."""


class Relay:
    """Queues messages from any thread, which one thread sends home; callers never wait.

    A connection that is cut would otherwise stop the workers at their next line of output.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(RELAYED)
        self._dropped = 0
        self._thread = threading.Thread(target=self._send, name="relay", daemon=True)
        self._thread.start()

    def __call__(self, **message: Any) -> None:
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self._dropped += 1

    @property
    def has_room(self) -> bool:
        return self._queue.qsize() < RELAYED // 2

    def close(self) -> None:
        try:
            self._queue.put(None, timeout=1.0)
        except queue.Full:
            return
        self._thread.join(timeout=5.0)

    def _send(self) -> None:
        try:
            while (message := self._queue.get()) is not None:
                send_message(sys.stdout, message)
                if self._dropped and self._queue.empty():
                    send_message(sys.stdout, {"dropped": self._dropped})
                    self._dropped = 0
        except OSError:
            return  # the connection is gone; the silence on our input will end the workers


class RecordSender:
    """Sends home, once a second, a sign of life and what was added to the run's records."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._tail: RecordTail | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._send, name="news", daemon=True).start()

    def follow(self, job: Job) -> None:
        with self._lock:
            self._tail = None
            if job.run:
                self._tail = RecordTail(Path(job.run), job.known, job.home_token, job.run_id)

    def send_new(self) -> None:
        # Output may be dropped; a gap in the records would be a fault.
        with self._lock:
            if self._tail and self._relay.has_room:
                for piece in self._tail.new_pieces():
                    self._relay(**piece.to_message())

    def _send(self) -> None:
        while True:
            time.sleep(ALIVE_EVERY_S)
            self._relay(alive=True)
            self.send_new()
