"""Who may ask, and what a browser may do with an answer."""

import hmac
import ipaddress
import re
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from dragoman.serve.limits import RefusedError

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, nothing inline, in nobody's frame."""
HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def with_headers(send: Send, headers: Mapping[str, str] = HEADERS) -> Send:
    """Returns what sends an answer with these headers, unless it has its own."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            sent = MutableHeaders(scope=message)
            for name, value in headers.items():
                sent.setdefault(name, value)
        await send(message)

    return send_with_headers


def check_key(given: str | None, expected: str) -> None:
    """Refuses a request without the right key, in a time that tells nothing about it."""
    if not expected:
        return
    if not given:
        raise RefusedError(403, "This server needs an API key; send it as api_key.")
    if not hmac.compare_digest(given.encode(errors="replace"), expected.encode()):
        raise RefusedError(403, "This API key is not valid here.")


def is_loopback(host: str) -> bool:
    """Returns whether nobody but this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_from_here(client: str, host: str) -> bool:
    """Returns whether a request comes from this machine, and asked for it by its own name.

    `host` is the request's header: the page of a site whose name was made to point to 127.0.0.1
    sends that name, and so do most web servers that pass on requests of others.
    """
    name = re.sub(r":\d*$", "", host).strip("[]")
    return is_loopback(client) and is_loopback(name)
