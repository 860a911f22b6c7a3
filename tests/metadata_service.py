"""A local server in the place of a cloud's metadata service; no test asks a real one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ACTION = "/latest/meta-data/spot/instance-action"
TOKEN = "/latest/api/token"
PREEMPTED = "/computeMetadata/v1/instance/preempted"
STOP = '{"action": "stop", "time": "2026-11-16T00:12:00Z"}'


class MetadataService:
    """Answers as AWS and Google do; tests change what it says while it runs."""

    def __init__(self) -> None:
        self.address = ""
        self.notice = ""
        """Body of AWS's instance-action; empty: there is none."""
        self.preempted = "FALSE"
        self.flavor = "Google"
        self.errors: dict[str, int] = {}
        """Path -> the status with which it is refused."""
        self.redirect = ""
        """Send every question there."""
        self.silent = False
        """Take questions and answer none."""
        self.token = ""
        """The only one that is good; set to something else, it has run out."""
        self.tokens_given = 0
        self.asked: list[tuple[str, str]] = []
        """(method, path) of every question."""
        self.released = threading.Event()
        """Lets those go who wait for an answer while the service is silent."""

    def count(self, path: str) -> int:
        return [asked for _, asked in self.asked].count(path)


@contextmanager
def metadata_service() -> Iterator[MetadataService]:
    service = MetadataService()

    class Handler(BaseHTTPRequestHandler):
        def handle_question(self) -> None:
            service.asked.append((self.command, self.path))
            if service.silent:
                service.released.wait()
                return
            if service.redirect:
                self.answer(302, location=service.redirect)
            elif self.path in service.errors:
                self.answer(service.errors[self.path])
            elif (self.command, self.path) == ("PUT", TOKEN):
                self.give_token()
            elif (self.command, self.path) == ("GET", ACTION):
                self.tell_action()
            elif (self.command, self.path) == ("GET", PREEMPTED):
                asked_well = self.headers["Metadata-Flavor"] == "Google"
                self.answer(200 if asked_well else 403, service.preempted)
            else:
                self.answer(405)

        do_GET = do_PUT = do_POST = do_HEAD = handle_question

        def give_token(self) -> None:
            life = int(self.headers["X-aws-ec2-metadata-token-ttl-seconds"] or 0)
            if not 1 <= life <= 21600:
                self.answer(400)
                return
            service.tokens_given += 1
            service.token = f"token-{service.tokens_given}=="
            self.answer(200, service.token)

        def tell_action(self) -> None:
            if not service.token or self.headers["X-aws-ec2-metadata-token"] != service.token:
                self.answer(401)
            elif service.notice:
                self.answer(200, service.notice)
            else:
                self.answer(404, "<html>not found</html>")

        def answer(self, status: int, text: str = "", location: str = "") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if service.flavor:
                self.send_header("Metadata-Flavor", service.flavor)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield service
        finally:
            service.released.set()
            server.shutdown()
            thread.join()
