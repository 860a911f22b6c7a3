"""The process that serves: a socket is bound, work goes on beside it, and signals end it gently.

Nothing here knows what is served: `dragoman serve` and `dragoman watch --web` share it.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman.errors import UserError

BACKLOG = 1024
SLOW_HEAD = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
LARGE_HEAD = SLOW_HEAD.replace(b"408 Request Timeout", b"431 Request Header Fields Too Large")
MOST_HEAD_BYTES = 65_536
UNREAD_MS = 60_000
"""For a client to read something of an answer that fills its buffers."""
_NOT_STOPPED_S = 5.0
"""After a signal, on top of what a request may take."""
_NOT_READ_S = 1.0
"""The same for a client to read what it was answered."""


def bind(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; refuses an address that cannot be had."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio switches Nagle's algorithm off only where the protocol is named; with it, every
        # answer waits 40 ms for the client's delayed acknowledgement.
        bound = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as error:
        raise _refusal(host, port, error) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # else a connection whose answer nobody reads stays
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise _refusal(host, port, error) from None
    return bound


def _refusal(host: str, port: int, error: OSError) -> UserError:
    reason = error.strerror or str(error)
    return UserError(f"{host}, port {port}: {reason}; name another with --host and --port")


def address_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(
    app: ASGIApp,
    bound: socket.socket,
    beside: Callable[[], Awaitable[None]],
    *,
    request_s: float,
    upload_s: float,
    closing: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or Ctrl-C, and then finishes the requests that have begun.

    `beside` works as long as it serves; when that ends or fails, the serving ends too. `closing` is
    called once no new request is taken: it ends answers that would never end by themselves.
    """
    asyncio.run(_run(app, bound, beside, request_s, upload_s, closing))


async def _run(
    app: ASGIApp,
    bound: socket.socket,
    beside: Callable[[], Awaitable[None]],
    request_s: float,
    upload_s: float,
    closing: Callable[[], None],
) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            http=timed_protocol(upload_s),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # what strangers send is no warning
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(request_s + _NOT_STOPPED_S),
        ),
        closing,
        request_s + _NOT_READ_S,
    )
    serving = asyncio.create_task(server.serve([bound]))
    working = asyncio.ensure_future(beside())
    await asyncio.wait({serving, working}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True  # a model that cannot be loaded ends it too
    await serving
    if working.done():
        working.result()
    working.cancel()


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, closing: Callable[[], None], unread_s: float
    ) -> None:
        super().__init__(config)
        self._closing, self._unread_s = closing, unread_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing()
        dropping = asyncio.get_running_loop().call_later(self._unread_s, self._drop_unread)
        await super().shutdown(sockets)
        dropping.cancel()

    def _drop_unread(self) -> None:
        """Drops clients that do not read their answers, for which uvicorn would wait."""
        for connection in [*self.server_state.connections]:
            if connection.transport.get_write_buffer_size():
                connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends after a signal with code 0; uvicorn would raise the signal again."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are for the main thread alone
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def timed_protocol(head_s: float) -> type[asyncio.Protocol]:
    """Returns HTTP that bounds the time and the bytes that a client takes without being worked for.

    uvicorn waits without end for the head of a request, and for the rest of one that it has
    answered: some thousand slow clients would take all connections. And it keeps all of a head.
    """

    class TimedProtocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _is_head_awaited = True
        _held_bytes = 0
        """Received since the last head or piece of a body ended."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def data_received(self, data: bytes) -> None:
            self._held_bytes += len(data)
            super().data_received(data)
            if self._held_bytes > MOST_HEAD_BYTES:
                self._close(LARGE_HEAD)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._is_head_awaited, self._held_bytes = True, 0
            self._start()

        def on_headers_complete(self) -> None:
            self._is_head_awaited, self._held_bytes = False, 0
            self._stop()
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._held_bytes = 0
            super().on_body(body)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._start()

        def _start(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head_s, self._give_up)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            # The end of an answer that is being worked on starts the clock again.
            if self.cycle is None or self.cycle.response_complete:
                self._close(SLOW_HEAD if self._is_head_awaited else b"")

        def _close(self, answer: bytes) -> None:
            if not self.transport.is_closing():
                self.transport.write(answer)
                self.transport.close()

    return TimedProtocol
