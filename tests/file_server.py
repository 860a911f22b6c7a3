"""A server of one file, each of whose answers a test may choose."""

import hashlib
from http.server import BaseHTTPRequestHandler

CONTENT = bytes(range(256)) * 4096  # 1 MiB: more than a socket takes at once
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves one file with ranges and an ETag; each request may be given another answer."""

    def do_GET(self):
        server = self.server
        server.requests.append(dict(self.headers) | {"path": self.path})
        answer = server.answers.pop(0) if server.answers else Handler.well
        answer(self)

    def log_message(self, *_):
        pass

    def send(self, status, body, cut=None, **headers):
        self.send_response(status)
        headers = {"Content_Length": len(body), "ETag": self.server.etag} | headers
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body[:cut])

    def well(self, cut=None):
        content = self.server.content
        wanted = self.headers.get("Range")
        if wanted and self.headers.get("If-Range") == self.server.etag:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            span = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            self.send(206, content[begin:], cut, Content_Range=span)
        else:
            self.send(200, content, cut)

    def broken(self):
        self.well(cut=len(self.server.content) // 4)

    def without_ranges(self):
        self.send(200, self.server.content)

    def broken_without_etag(self):
        self.send(200, self.server.content, cut=1000, ETag=None)


def status(code):
    return lambda handler: handler.send(code, b"sorry")


def endless(handler, chunk=b"x" * 50_000, pause_s=0.0, **headers):
    """Sends until the other side has had enough."""
    handler.send(200, b"", Content_Length=None, **headers)
    try:
        while not handler.server.over.wait(pause_s):
            handler.wfile.write(chunk)
    except OSError:
        pass
    handler.server.given_up.set()
