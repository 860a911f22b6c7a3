"""The checking machine's side of each host: orders go out, answers come in, each with a deadline.

A host that does not answer in time has a name, and is asked for nothing more.
"""

import json
import logging
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.ssh import failure, read_message, run_module, ssh_command
from dragoman.errors import DragomanError, RunError

logger = logging.getLogger(__name__)

PROGRAM = "dragoman.check.host"
ALIVE, ALIVE_EVERY_S = "alive", 5.0
LEAVING_S = 3.0
"""How long a host's program may take to end when its input has closed."""
POLL_S = 0.1
MOST_ERROR_LINES = 50

Answer = TypeVar("Answer")


class SilentHostError(RunError):
    """A host that is connected and does not answer."""


class Session:
    """One host's program, for the length of a check."""

    def __init__(self, host: Host, command: Sequence[str]) -> None:
        self.host = host
        self.name = host.name
        self.loss: DragomanError | None = None
        """Why there is no use in asking it for more: it has ended, or hangs."""
        self._numbers = 0
        self._lock = threading.Lock()
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._is_closed = threading.Event()
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches this process alone
        )
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    def order(self, order: str, **details: Any) -> int:
        """Sends an order; returns the number under which its answers come."""
        with self._lock:
            self._numbers += 1
            number = self._numbers
            if order != ALIVE:  # which has no answer
                self._answers[number] = queue.Queue()
            line = json.dumps({"order": order, "number": number} | details)
            with suppress(OSError, ValueError):  # it has ended, which `answer` detects
                assert self._process.stdin
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
        return number

    def answer(self, number: int, within_s: float) -> dict[str, Any]:
        """Returns the next answer to an order; errors name the host."""
        deadline = time.monotonic() + within_s
        while True:
            # In this order: what an ended program has said before it ended is read first.
            has_ended = self._process.poll() is not None and not self._threads[0].is_alive()
            try:
                message = self._answers[number].get(timeout=POLL_S)
            except queue.Empty:
                if self._is_closed.is_set():
                    raise RunError(f"{self.name}: the check has ended") from None
                if has_ended:
                    self._threads[1].join(1.0)
                    errors = "\n".join(self._errors)
                    self.loss = failure(self.host, self._process.returncode, errors)
                    raise self.loss from None
                if time.monotonic() > deadline:
                    self.loss = SilentHostError(
                        f"{self.name}: has not answered for {within_s:.0f} s and hangs, or the "
                        "connection to it does; look there with `ssh`, or restart it"
                    )
                    raise self.loss from None
                continue
            if "error" in message:
                raise RunError(f"{self.name}: {message['error']}")
            return message

    def ask(self, order: str, within_s: float, **details: Any) -> dict[str, Any]:
        return self.answer(self.order(order, **details), within_s)

    def close(self) -> None:
        """Ends the program on the host by closing its input; a silent one is left to its kernel,
        which ends it when it runs again."""
        self._is_closed.set()
        with suppress(OSError), self._lock:
            assert self._process.stdin
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if isinstance(self.loss, SilentHostError) else LEAVING_S)
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    def _read(self) -> None:
        assert self._process.stdout
        with suppress(ValueError, OSError):  # closed
            for line in self._process.stdout:
                message = read_message(line.rstrip("\n"))
                if message and message.get("number") in self._answers:
                    self._answers[message["number"]].put(message)

    def _read_errors(self) -> None:
        assert self._process.stderr
        with suppress(ValueError, OSError):
            for line in self._process.stderr:
                self._errors = [*self._errors, line.rstrip("\n")][-MOST_ERROR_LINES:]


@contextmanager
def sessions_on(cluster: Cluster | None, here: Host) -> Iterator[dict[str, Session]]:
    """Starts the program on every host, or without a cluster on this machine as `here`."""
    if cluster is None:
        command = [sys.executable, "-u", "-m", PROGRAM]
        started = {here.name: Session(here, command)}
    else:
        started = {
            host.name: Session(host, ssh_command(cluster, host, run_module(host, PROGRAM)))
            for host in cluster.hosts
        }
    is_over = threading.Event()
    keeper = threading.Thread(target=_keep_alive, args=(started, is_over), daemon=True)
    keeper.start()
    try:
        yield started
    finally:
        is_over.set()
        # At once, since each may take a moment to end.
        closing = [threading.Thread(target=session.close) for session in started.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


def on_each(
    sessions: Mapping[str, Session], do: Callable[[Session], Answer]
) -> dict[str, Answer | DragomanError]:
    """Calls `do` for all sessions in parallel; returns each result or error by host name."""

    def attempt(session: Session) -> Answer | DragomanError:
        try:
            return do(session)
        except DragomanError as error:
            return error

    return dict(zip(sessions, in_parallel(attempt, list(sessions.values()), sessions), strict=True))


def in_parallel(
    do: Callable[[Any], Answer], items: Sequence[Any], sessions: Mapping[str, Session]
) -> list[Answer]:
    """Calls `do` for all items in threads; an interruption ends the sessions, so that none of the
    threads goes on waiting for an answer."""
    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        try:
            return list(pool.map(do, items))
        except BaseException:
            for session in sessions.values():
                session.close()
            raise


def _keep_alive(sessions: Mapping[str, Session], is_over: threading.Event) -> None:
    while not is_over.wait(ALIVE_EVERY_S):
        for session in sessions.values():
            session.order(ALIVE)
