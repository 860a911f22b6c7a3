"""Connections to servers that may be slow, broken or hostile: an address in, an answer out.

A server must answer in bounded headers, send at some pace, and not lead to an insecure place.
"""

import http.client
import io
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import IO, Any

TIMEOUT_S = 30.0
# Answers that mean "not now": timeouts, too many requests, and errors of the server.
PASSING_STATUSES = {408, 425, 429, 500, 502, 503, 504}
# A server that sends a byte now and then never runs into the timeout.
SLOWEST_BYTES_PER_S = 100
PACE_WINDOW_S = 60.0
LARGEST_HEADER_BYTES = 1 << 20
SHOWN_CHARACTERS = 100


class BrokenError(Exception):
    """The connection or the server failed in a way that may pass."""


class UnreachableError(BrokenError):
    """Nobody answers there. Worth waiting for only if someone has answered before."""


class TooSlowError(BrokenError):
    """The connection is too slow to be worth waiting for."""


class StalePartError(BrokenError):
    """What has arrived belongs to another file than the server has now."""


class HopelessError(Exception):
    """Another try would fail the same way."""


class _InsecureRedirectError(Exception):
    """From https to an address where anyone on the way could change the file."""


def open_address(address: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    """Opens an address; raises `BrokenError` if another try may help, else `HopelessError`."""
    # Built each time, since it reads http_proxy, https_proxy and no_proxy then.
    opener = urllib.request.build_opener(_NoDowngrade, _PacedHttp, _PacedHttps)
    try:
        request = urllib.request.Request(address, headers=headers)
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
    except _InsecureRedirectError as error:
        raise HopelessError(f"redirects to {error}, where anyone could change it") from error
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answers {error.code} {shown(error.reason)}"
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise StalePartError("the server's file is shorter than what has arrived") from error
        if error.code in PASSING_STATUSES:
            raise BrokenError(reason) from error
        raise HopelessError(reason) from error
    except urllib.error.URLError as error:
        cause = error.reason
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise HopelessError(f"its certificate is not valid ({cause.verify_message})") from error
        if isinstance(cause, socket.gaierror):
            raise UnreachableError("its name cannot be resolved; is there a network?") from error
        if isinstance(cause, ConnectionRefusedError):
            raise UnreachableError("the server refuses the connection") from error
        raise BrokenError(f"the connection failed ({cause})") from error
    except (http.client.HTTPException, OSError) as error:
        raise BrokenError(f"the connection broke ({shown(error)})") from error
    except ValueError as error:
        reason = f"it, or where it redirects to, is not an address ({shown(error)})"
        raise HopelessError(reason) from error
    return response


def shown(answer: object) -> str:
    """Returns a server's answer, which may hold markup or escape codes, as part of a sentence."""
    text = str(answer)[:SHOWN_CHARACTERS]
    return "".join(character if character.isprintable() else "?" for character in text)


class _PacedSocket(io.RawIOBase):
    """The bytes of a connection, which fails if they arrive too slowly."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._waited_s = 0.0
        self._received = 0
        self.header_bytes_left: int | None = None
        """None if this is not a header."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        begun = time.monotonic()
        count = self._raw.readinto(buffer)
        self._waited_s += time.monotonic() - begun
        self._received += count or 0
        if self.header_bytes_left is not None:
            self.header_bytes_left -= count or 0
            if self.header_bytes_left < 0:
                raise BrokenError("the server's headers are too long")
        if self._waited_s > PACE_WINDOW_S:
            if self._received < SLOWEST_BYTES_PER_S * self._waited_s:
                raise TooSlowError(
                    f"the server sends less than {SLOWEST_BYTES_PER_S} bytes per second"
                )
            self._waited_s, self._received = 0.0, 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _PacedResponse(http.client.HTTPResponse):
    def begin(self) -> None:
        # makefile() of http.client is a buffered reader over the socket; ours goes in between.
        paced = _PacedSocket(self.fp.detach())
        self.fp = io.BufferedReader(paced)
        paced.header_bytes_left = LARGEST_HEADER_BYTES
        super().begin()
        paced.header_bytes_left = None


class _Paced:
    """Mixed into the handlers of urllib, whose connections then answer with paced responses."""

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        def connect(*arguments: Any, **settings: Any) -> Any:
            connection = http_class(*arguments, **settings)
            connection.response_class = _PacedResponse
            return connection

        return super().do_open(connect, req, **options)  # type: ignore[misc]


class _PacedHttp(_Paced, urllib.request.HTTPHandler):
    pass


class _PacedHttps(_Paced, urllib.request.HTTPSHandler):
    pass


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        fp.close()  # urllib would read it to its end, which may be far away
        allowed = ("https:",) if req.full_url.startswith("https:") else ("https:", "http:")
        if not newurl.startswith(allowed):
            raise _InsecureRedirectError(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
