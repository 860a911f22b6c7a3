"""A real S3 server (moto's, a process of its own), and a proxy that breaks what goes to it.

Also a server that refuses everything with an answer of the test's choice: moto refuses nobody.
"""

import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PROGRAM = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0)
server.start()
print("port", server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI-not-a-secret"
PREFIXES = ("AWS_", "GOOGLE_", "AZURE_")


def credentials(port: int) -> dict[str, str]:
    """The variables with which a server of this machine is reached."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }


def environment(port: int) -> dict[str, str]:
    """This process's environment, with no other storage variables than those of the server."""
    others = {n: v for n, v in os.environ.items() if not n.startswith(PREFIXES)}
    return others | credentials(port) | {"OMP_NUM_THREADS": "1"}


@contextmanager
def s3_server() -> Iterator[int]:
    """Yields the port of a server whose buckets live as long as it does."""
    hidden = {"AWS_ENDPOINT_URL": ""}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | hidden,
    ) as process:
        try:
            assert process.stdout
            lines = iter(process.stdout.readline, "")
            yield next(int(line.split()[1]) for line in lines if line.startswith("port "))
        finally:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def make_bucket(port: int, name: str) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=30):
        pass


class Proxy:
    """Passes on bytes between clients and the server; a test sets what happens to them."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut_after: int | None = None
        """Bytes from the client after which its connection breaks, each time anew."""
        self.break_after: int | None = None
        """Bytes from all clients together after which the network is gone."""
        self.truncate_after: int | None = None
        """Bytes from the server after which its answer ends."""
        self.delay_s = 0.0
        """Before each piece that goes to the server."""
        self.is_closed = False
        """Refuse everybody, as a network that is gone."""
        self.cuts = self.refusals = 0
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def heal(self) -> None:
        self.cut_after = self.truncate_after = self.break_after = None
        self.delay_s, self.is_closed = 0.0, False

    def close(self) -> None:
        self._over.set()
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        self._listener.settimeout(0.05)
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if self.is_closed:
                self.refusals += 1
                client.close()
            else:
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            ends = threading.Event()
            answers = threading.Thread(target=self._pass, args=(server, client, ends, False))
            answers.start()
            self._pass(client, server, ends, True)
            ends.set()
            answers.join()

    def _pass(
        self, origin: socket.socket, goal: socket.socket, ends: threading.Event, asks: bool
    ) -> None:
        passed = 0
        origin.settimeout(0.05)
        while not ends.is_set() and not self._over.is_set():
            try:
                piece = origin.recv(16384)
            except TimeoutError:
                continue
            except OSError:
                break
            if not piece:
                break
            bound = self.cut_after if asks else self.truncate_after
            if asks and self.break_after is not None:
                left, self.break_after = self.break_after, self.break_after - len(piece)
                if left < len(piece):
                    self.is_closed, bound = True, passed + max(0, left)
            if asks and self.delay_s:
                self._over.wait(self.delay_s)
            if bound is not None and passed + len(piece) > bound:
                with suppress(OSError):
                    goal.sendall(piece[: max(0, bound - passed)])
                self.cuts += 1
                break
            passed += len(piece)
            try:
                goal.sendall(piece)
            except OSError:
                break
        ends.set()
        for end in (origin, goal):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_to(target: int) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()


class Refusal:
    """What a store answers to everything: a status and a code, as S3 words it."""

    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code
        self.port = 0
        self.asked: list[str] = []

    @property
    def body(self) -> bytes:
        words = f"{KEY} and {SECRET} were not enough"
        return f"<Error><Code>{self.code}</Code><Message>{words}</Message></Error>".encode()


@contextmanager
def refusing_server(status: int, code: str) -> Iterator[Refusal]:
    refusal = Refusal(status, code)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def refuse(self) -> None:
            refusal.asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b"" if self.command == "HEAD" else refusal.body
            self.send_response(refusal.status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = refuse

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        refusal.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield refusal
        finally:
            server.shutdown()
            thread.join()
