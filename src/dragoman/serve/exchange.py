"""One request and its answer: what holds for all of them, whatever they are about."""

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.metrics import Metrics
from dragoman.serve.security import with_headers

logger = logging.getLogger(__name__)

CLIENT_GONE = 499
"""Status in metrics and log of a request whose client did not wait, as nginx has it."""
FAILED = 500

Result = TypeVar("Result")


class Exchange:
    """Adds the headers of every answer, and counts, times and logs the requests."""

    def __init__(
        self, app: ASGIApp, known_paths: Collection[str], metrics: Metrics, *, is_logged: bool
    ) -> None:
        self._app, self._known_paths = app, known_paths
        self._metrics, self._is_logged = metrics, is_logged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        status = CLIENT_GONE

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, with_headers(send_noting_status))
        except ClientDisconnect:
            status = CLIENT_GONE
        except asyncio.CancelledError:  # by uvicorn, which closes the connection
            logger.warning(
                f"{scope['method']} {_shown(scope['path'])} was broken off: it took longer than "
                "the server may take to end"
            )
            status = FAILED
        except Exception:
            # The app has answered already, in one sentence.
            logger.exception(f"{scope['method']} {_shown(scope['path'])} failed")
            status = FAILED
        seconds = time.monotonic() - begun
        route = scope["path"] if scope["path"] in self._known_paths else "other"
        self._metrics.count_request(route, status, seconds)
        if self._is_logged:
            client = scope["client"][0] if scope.get("client") else "unknown"
            what = f"{scope['method']} {_shown(scope['path'])}"
            logger.info(f"{client} {what} {status} {1000 * seconds:.0f} ms")


async def unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Returns what `work` returns; cancels it when the client disappears."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _shown(path: str) -> str:
    """Returns a path for the log, on one line and not longer than that."""
    return repr(path[:100])[1:-1]
