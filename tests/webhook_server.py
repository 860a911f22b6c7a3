"""A local server in the place of a webhook, each of whose answers a test may choose."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "T0KEN-that-nobody-may-see"


class Webhook:
    """What was posted, and how the next posts are answered."""

    def __init__(self) -> None:
        self.address = ""
        self.messages: list[dict[str, Any]] = []
        """Of the posts that were taken."""
        self.posts: list[dict[str, Any]] = []
        """Of all."""
        self.answers: list[Callable[[BaseHTTPRequestHandler], None]] = []
        """For the next posts; then all are taken."""
        self.hangs = False
        """Take posts and answer none."""
        self.over = threading.Event()
        self.arrived = threading.Condition()

    def kinds(self) -> list[str]:
        return [message["kind"] for message in self.messages]

    def wait_for(self, count: int, seconds: float = 100) -> list[dict[str, Any]]:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.messages) >= count, seconds)
        return self.messages


def status(code: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@contextmanager
def webhook_server() -> Iterator[Webhook]:
    webhook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with webhook.arrived:
                webhook.posts.append(body)
                webhook.arrived.notify_all()
            if webhook.hangs:
                webhook.over.wait()
                return
            if webhook.answers:
                webhook.answers.pop(0)(self)
                return
            with webhook.arrived:  # before the answer, after which its sender may look
                webhook.messages.append(body)
                webhook.arrived.notify_all()
            status(200)(self)

        def do_GET(self) -> None:
            raise AssertionError("a message came as a GET")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    webhook.address = f"http://127.0.0.1:{server.server_port}/{SECRET}?key={SECRET}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield webhook
    finally:
        webhook.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
