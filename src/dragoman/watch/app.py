"""The page of `dragoman watch --web`: runs come in, a server that shows them as they are goes out.

One task reads the runs, about once a second, for all clients together. Nothing that a client does
reaches a run.
"""

import asyncio
import gzip
import hashlib
import ipaddress
import logging
import os
import re
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing, suppress
from functools import cache, partial
from importlib import resources
from typing import Protocol

import plotly.offline
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.console import echo
from dragoman.report.webpage import shipped
from dragoman.rundir import RunDir
from dragoman.serve.exchange import unless_gone
from dragoman.serve.security import HEADERS, is_from_here, is_loopback, with_headers
from dragoman.serve.server import address_of, bind, run
from dragoman.watch.broadcast import Broadcast
from dragoman.watch.content import Watched
from dragoman.watch.page import PageWriter, Parts
from dragoman.watch.run_watch import RunWatch

logger = logging.getLogger(__name__)

REFRESH_S = 1.0
UPLOAD_S = 20.0
UNREAD_S = 20.0
"""For a client to read some of an event; after that it is dropped."""
MOST_CLIENTS = 64
REFUSAL = (
    "Ask for this page by the address that dragoman watch has printed; if that was started with "
    "--host, by the name or the IP address of its machine."
)
WATCH_HEADERS = {
    **HEADERS,
    # Plotly writes style attributes and a style element; scripts are files of this server alone.
    "content-security-policy": HEADERS["content-security-policy"].replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    ),
    "cache-control": "no-cache",
}
FOREVER = "public, max-age=31536000, immutable"
"""For what has another address once it is another one."""


class Watch(Protocol):
    """What is asked of a `RunWatch`."""

    def refresh(self) -> Watched: ...
    def close(self) -> None: ...


def serve(
    runs: Sequence[RunDir],
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
) -> None:
    """Shows runs until Ctrl-C or SIGTERM."""
    with bind(host, port) as bound:
        watches = [RunWatch(each) for each in runs]
        broadcast = Broadcast()
        address = address_of(bound)
        try:
            echo(f"Watching {', '.join(str(each.root) for each in runs)} at {address}")
            if open_browser:
                show_in_browser(address)
            run(
                create_app(broadcast, () if is_loopback(host) else own_names(host)),
                bound,
                lambda: refresh_forever(watches, broadcast),
                request_s=0.0,
                upload_s=UPLOAD_S,
                closing=broadcast.close,
            )
        finally:
            for watch in watches:
                watch.close()


async def refresh_forever(watches: Sequence[Watch], broadcast: Broadcast) -> None:
    refreshers = [_Refresher(watch, number) for number, watch in enumerate(watches, start=1)]

    def refresh() -> list[Parts]:
        return [refresher.refresh() for refresher in refreshers]

    while True:
        # In another thread, so that clients are answered meanwhile; one after the other, since
        # a RunWatch is for one thread at a time.
        broadcast.publish(await asyncio.to_thread(refresh))
        await asyncio.sleep(REFRESH_S)


class _Refresher:
    """The page of one run; what is wrong with the run never ends the server."""

    def __init__(self, watch: Watch, number: int) -> None:
        self._watch = watch
        self._writer = PageWriter(f"run{number}-")
        self._parts: Parts = {}
        self._failure = ""

    def refresh(self) -> Parts:
        try:
            self._parts = self._writer.parts(self._watch.refresh())
            self._failure = ""
        except Exception as error:
            if repr(error) != self._failure:
                self._failure = repr(error)
                logger.exception("a run cannot be shown")
            failed = '<p class="banner poor" role="alert">This cannot be shown at the moment; the '
            return {"failure": f"{failed}log of the server says why.</p>", **self._parts}
        return self._parts


def create_app(broadcast: Broadcast, names: Collection[str] = ()) -> ASGIApp:
    """`names`: of this machine, by which others may ask; none: it is for this machine alone."""

    async def events(request: Request) -> ASGIApp:
        if broadcast.clients >= MOST_CLIENTS:
            return PlainTextResponse("Too many pages are open; close some.", 503)
        if request.method == "HEAD":  # an answer without content would never end
            return Response(media_type="text/event-stream")

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            with suppress(ClientDisconnect, TimeoutError):
                await unless_gone(request, _send_events(broadcast, send))

        return answer

    routes = [
        Route("/", _index),
        Route("/events", events),
        Route(f"/{_plotly_name()}", _plotly),
        *(Route(f"/{name}", partial(_file, name)) for name in _FILES),
    ]
    return _Guard(Starlette(routes=routes), names)


async def _send_events(broadcast: Broadcast, send: Send) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async with aclosing(broadcast.events()) as events:
        async for event in events:
            async with asyncio.timeout(UNREAD_S):
                body = event.encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


class _Guard:
    """Answers with the headers that keep a page safe, and only those that ask by a name of ours.

    The page of a site whose name was made to point to this machine would otherwise read the runs.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and not self._is_allowed(scope):
            app = PlainTextResponse(REFUSAL, 403)
        await app(scope, receive, with_headers(send, WATCH_HEADERS))

    def _is_allowed(self, scope: Scope) -> bool:
        host = Headers(scope=scope).get("host", "")
        client = scope["client"][0] if scope.get("client") else ""
        return is_from_here(client, host) or is_one_of(self._names, host)


def is_one_of(names: Collection[str], host: str) -> bool:
    """Returns whether a Host header names this machine in a way that no other site can."""
    name = re.sub(r":\d*$", "", host).strip("[]")
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return bool(names)
    return name.lower() in names


def own_names(host: str) -> set[str]:
    """Returns the names of this machine, where it listens on `host`; can take seconds."""
    return {name.lower() for name in ("localhost", host, socket.gethostname(), socket.getfqdn())}


_FILES: dict[str, tuple[Callable[[], str], str]] = {
    "page.css": (partial(shipped, "page.css"), "text/css"),
    "page.js": (partial(shipped, "page.js"), "text/javascript"),
    "watch.css": (lambda: _own("watch.css"), "text/css"),
    "watch.js": (lambda: _own("watch.js"), "text/javascript"),
    "icon.svg": (lambda: _text("dragoman.serve", "page", "icon.svg"), "image/svg+xml"),
}


async def _index(request: Request) -> Response:
    html = _own("index.html").replace("plotly.js", _plotly_name())
    return Response(html, media_type="text/html")


async def _file(name: str, request: Request) -> Response:
    read, media = _FILES[name]
    return Response(read(), media_type=media)


async def _plotly(request: Request) -> Response:
    headers = {"cache-control": FOREVER, "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = await asyncio.to_thread(_packed_plotly)
        headers["content-encoding"] = "gzip"
    else:
        content = plotly.offline.get_plotlyjs().encode()
    return Response(content, headers=headers, media_type="text/javascript")


@cache
def _plotly_name() -> str:
    """Returns a name that another release of the library does not have."""
    digest = hashlib.sha256(plotly.offline.get_plotlyjs().encode()).hexdigest()
    return f"plotly-{digest[:12]}.js"


@cache
def _packed_plotly() -> bytes:
    return gzip.compress(plotly.offline.get_plotlyjs().encode(), compresslevel=5, mtime=0)


def _own(name: str) -> str:
    return _text("dragoman.watch", "page_files", name)


def _text(package: str, *path: str) -> str:
    return resources.files(package).joinpath(*path).read_text(encoding="utf-8")


def show_in_browser(address: str) -> None:
    """Opens the page where there is a screen; the server does not wait for it."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_screen:
        # Some browsers are waited for until they are closed.
        threading.Thread(target=_open, args=(address,), daemon=True).start()


def _open(address: str) -> None:
    with suppress(Exception):  # the address is printed, too
        webbrowser.open(address)
