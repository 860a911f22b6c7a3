"""Delivers messages to a webhook and a command: retried, with bounded time, never in the way.

The address of a webhook is a secret, as whoever has it can write there: of it, only the host stands
in any sentence here.
"""

import email.utils
import math
import os
import queue
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message as Headers
from http.client import HTTPException
from typing import IO, Protocol
from urllib.parse import SplitResult, urlsplit

from dragoman.errors import ConfigError
from dragoman.watch.messages import Message

TRY_S = 10.0
"""How long a server may take for one answer."""
COMMAND_S = 30.0
"""How long a command may take for one message."""
PAUSES_S = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Between the tries of one message."""
MOST_PAUSE_S = 120.0
"""Of what a server may ask for with Retry-After."""
MOST_LAST_PAUSE_S = 5.0
"""Once the run has ended."""
ENDING_S = 1.0
"""Before the last moment, for a command to be ended: nobody else would end it."""
MOST_WAITING = 100
"""Messages that wait for a server."""


@dataclass(frozen=True)
class Failure:
    """Why one try did not deliver a message."""

    why: str
    is_final: bool = False
    """Another try would end like this one."""
    pause_s: float = 0.0
    """For which the server has asked."""


class Try(Protocol):
    """Delivers one message once, in bounded time, and in `within_s` at most; None: it was taken."""

    def __call__(self, message: Message, within_s: float = math.inf) -> Failure | None: ...


def webhook_address(variable: str, variables: Mapping[str, str]) -> str:
    """Returns the address that stands in an environment variable; refuses what is none."""
    wrong = ConfigError(
        f"notify.webhook_variable: the environment variable {variable} should hold an address such "
        "as https://host/path, without a user name; correct it, or remove the key"
    )
    address = variables.get(variable, "").strip()
    if not address:
        raise ConfigError(
            f"notify.webhook_variable: the environment variable {variable} is not set; set it to "
            "the address of the webhook, or remove the key"
        )
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise wrong from None
    is_plain = address.isascii() and address.isprintable() and " " not in address
    if not is_good or not is_plain or "@" in parts.netloc:
        raise wrong
    return address


def to_webhook(address: str) -> Try:
    where = _shown(urlsplit(address))

    def post(message: Message) -> Failure | None:
        request = urllib.request.Request(
            address,
            data=message.model_dump_json().encode(),
            headers={
                "Content-Type": "application/json; charset=utf-8",
                "User-Agent": "dragoman",
            },
        )
        try:
            # Its answer has nothing for us but its status, and is not read.
            with _opener().open(request, timeout=TRY_S):
                return None
        except urllib.error.HTTPError as error:
            with error:
                return _refused(where, error.code, error.headers)
        except (OSError, HTTPException, ValueError) as error:
            return Failure(f"{where} cannot be reached ({_reason(error)})")

    def post_in_time(message: Message, within_s: float = math.inf) -> Failure | None:
        return _within(min(2 * TRY_S, within_s), lambda: post(message), where)

    return post_in_time


def to_command(command: tuple[str, ...]) -> Try:
    program = command[0]

    def run(message: Message, within_s: float = math.inf) -> Failure | None:
        most_s = min(COMMAND_S, within_s)
        variables = os.environ | {
            "DRAGOMAN_KIND": message.kind,
            "DRAGOMAN_RUN": message.run,
            "DRAGOMAN_TEXT": message.text,
        }
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=variables,
                start_new_session=True,  # so that it can be ended with all that it has started
            )
        except (OSError, ValueError) as error:
            return Failure(f"{program} cannot be started ({_reason(error)})", is_final=True)
        with process:
            try:
                process.communicate(message.model_dump_json().encode(), timeout=most_s)
            except subprocess.TimeoutExpired:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                return Failure(f"{program} took longer than {most_s:.3g} s")
        if process.returncode:
            return Failure(f"{program} ended with exit code {process.returncode}")
        return None

    return run


class Channel:
    """Delivers messages in their order, in a thread of its own."""

    def __init__(self, try_once: Try, complain: Callable[[str], None]) -> None:
        """`complain` is given one sentence for each message that could not be delivered."""
        self._try_once, self._complain = try_once, complain
        self._waiting: queue.Queue[Message | None] = queue.Queue(MOST_WAITING)
        self._until = math.inf
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._deliver, name="notifications", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        """Returns at once."""
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            self._complain(f"a notification was dropped: {MOST_WAITING} wait to be delivered")

    def hurry(self, until: float) -> None:
        """Makes pauses short, and gives up at the moment `until` of the monotonic clock."""
        self._until = until
        self._closing.set()

    def close(self, until: float) -> None:
        """Delivers what waits, in a hurry."""
        self.hurry(until)
        with suppress(queue.Full):
            self._waiting.put(None, timeout=max(0.0, until - time.monotonic()))
            self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._complain("a notification could not be delivered in the time after the run's end")

    def _deliver(self) -> None:
        while message := self._waiting.get():
            if failure := self._tried(message):
                self._complain(f"a notification ({message.kind}) was not delivered: {failure.why}")

    def _tried(self, message: Message) -> Failure | None:
        """Returns the last failure; None: it was delivered."""
        failure: Failure | None = None
        for pause_s in (*PAUSES_S, None):
            within_s = self._until - ENDING_S - time.monotonic()
            if within_s <= 0:
                return failure or Failure("there was no time left after the run's end")
            failure = self._try_once(message, within_s)
            if failure is None or failure.is_final or pause_s is None:
                return failure
            asked_s = min(failure.pause_s, MOST_PAUSE_S)
            self._closing.wait(max(pause_s, asked_s))
            if self._closing.is_set():  # what time is left allows no long pauses
                last_pause_s = max(min(pause_s, MOST_LAST_PAUSE_S), asked_s)
                if time.monotonic() + last_pause_s > self._until:
                    return failure
                time.sleep(last_pause_s)
        raise AssertionError("the last try returns")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: a POST would go on as a GET, and deliver nothing."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Headers,
        newurl: str,
    ) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    """Returns one that knows HTTP alone, through the proxy of the environment, if there is one."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _NoRedirects(),
    ):
        opener.add_handler(handler)
    return opener


def _refused(where: str, status: int, headers: Headers) -> Failure:
    if 300 <= status < 400:
        why = f"{where} redirects elsewhere (status {status}); set the final address"
        return Failure(why, is_final=True)
    again = status >= 500 or status in (408, 425, 429)
    pause_s = _retry_after_s(headers.get("Retry-After", ""), time.time())
    return Failure(f"{where} answered with status {status}", not again, pause_s)


def _retry_after_s(value: str, now: float) -> float:
    """Returns seconds from a number of them or a date; 0 for anything else."""
    if value.strip().isdecimal():
        return float(value.strip()[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _within(seconds: float, deliver: Callable[[], Failure | None], where: str) -> Failure | None:
    """Gives up on a server that sends a byte now and then, for which no timeout of a socket ends.

    Its thread is left to itself.
    """
    results: list[Failure | None] = []
    thread = threading.Thread(target=lambda: results.append(deliver()), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else Failure(f"{where} did not answer within {seconds:.3g} s")


def _shown(address: SplitResult) -> str:
    """Returns what of an address may be shown: without its path and its query."""
    return f"{address.scheme}://{address.hostname}"


def _reason(error: Exception) -> str:
    """Returns what the system said; of others the kind, as they may repeat an address."""
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return "timed out"
    return getattr(inner, "strerror", None) or type(inner).__name__
