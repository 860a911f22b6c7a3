"""Notices of clouds that take a host away: a metadata service is asked now and then. Without torch.

Every host asks its own service, from a thread, and only when the config names the cloud. What the
service answers about the host becomes a sentence; what is wrong with the service is logged once and
never stops a run.
"""

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from typing import IO, NamedTuple

from dragoman.config import PreemptionSettings

logger = logging.getLogger(__name__)

ADDRESSES = {"aws": "http://169.254.169.254", "google": "http://metadata.google.internal"}
ANSWER_S = 2.0
"""A service on the host's own link answers in milliseconds; one that is not there, never."""
ANSWER_BYTES = 4096

AWS_TOKEN = "/latest/api/token"
AWS_ACTION = "/latest/meta-data/spot/instance-action"
AWS_TOKEN_LIFE_S = 6 * 3600
"""The longest that AWS gives; a token that has run out is refused with 401 and renewed."""
GOOGLE_PREEMPTED = "/computeMetadata/v1/instance/preempted"
GOOGLE_FLAVOR = ("Metadata-Flavor", "Google")
"""Asked with this header, the service answers with it: nobody else on the network does."""

Question = Callable[[], str | None]
"""Asks a service once; None: the host may stay."""


@contextmanager
def notices(settings: PreemptionSettings, on_notice: Callable[[str], None]) -> Iterator[None]:
    """While open, `on_notice` is called once, from a thread, when this host will be taken away."""
    if settings.cloud == "none":
        yield
        return
    address = settings.metadata_address or ADDRESSES[settings.cloud]
    ask = aws(address) if settings.cloud == "aws" else google(address)
    closed = threading.Event()
    thread = threading.Thread(
        target=_poll,
        args=(ask, settings, on_notice, closed),
        name="notices",
        daemon=True,  # an answer that trickles in must not keep the process from ending
    )
    thread.start()
    try:
        yield
    finally:
        closed.set()
        thread.join(timeout=ANSWER_S)


def aws(address: str) -> Question:
    """Returns a question to version 2 of the service, which wants a token with each."""
    token = ""

    def renew() -> None:
        nonlocal token
        life = {"X-aws-ec2-metadata-token-ttl-seconds": str(AWS_TOKEN_LIFE_S)}
        token = _good(_answer(address + AWS_TOKEN, life, method="PUT"))

    def ask() -> str | None:
        if not token:
            renew()
        answer = _answer(address + AWS_ACTION, {"X-aws-ec2-metadata-token": token})
        if answer.status == HTTPStatus.UNAUTHORIZED:
            renew()
            answer = _answer(address + AWS_ACTION, {"X-aws-ec2-metadata-token": token})
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        return _aws_notice(_good(answer))

    return ask


def google(address: str) -> Question:
    def ask() -> str | None:
        answer = _answer(address + GOOGLE_PREEMPTED, dict([GOOGLE_FLAVOR]))
        text = _good(answer)
        if answer.flavor != GOOGLE_FLAVOR[1]:
            raise ValueError(f"the answer lacks the header {GOOGLE_FLAVOR[0]}")
        if text not in ("TRUE", "FALSE"):
            raise ValueError(f"the answer is {text[:80]!r} instead of TRUE or FALSE")
        return "Google will stop this host within 30 s" if text == "TRUE" else None

    return ask


def _aws_notice(text: str) -> str:
    """Returns a sentence for {"action": "stop", "time": "2026-11-16T00:12:00Z"}.

    The action may be terminate or hibernate as well.
    """
    content = json.loads(text)
    try:
        action, time = str(content["action"]), str(content["time"])
    except (KeyError, TypeError):
        raise ValueError(f"the answer is {text[:80]!r}, without action and time") from None
    return f"AWS will {action} this host at {time}"


def _poll(
    ask: Question,
    settings: PreemptionSettings,
    on_notice: Callable[[str], None],
    closed: threading.Event,
) -> None:
    has_warned = False
    while not closed.is_set():
        try:
            notice = ask()
        except (OSError, HTTPException, ValueError) as error:
            if not has_warned and not closed.is_set():
                has_warned = True
                logger.warning(
                    f"the metadata service of preemption.cloud = {settings.cloud} gives no answer "
                    f"that can be used ({_reason(error)}); training goes on and keeps asking, but "
                    "the host may be taken away without notice"
                )
        else:
            if notice:
                on_notice(notice)
                return
        closed.wait(settings.poll_every_s)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The service never redirects; whoever does is not it, and must not be sent the token."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: object,
        newurl: str,
    ) -> None:
        return None


class _Answer(NamedTuple):
    status: int
    text: str
    flavor: str


def _answer(url: str, headers: dict[str, str], method: str = "GET") -> _Answer:
    # The address is valid on this host alone; a proxy would ask for itself, or for nobody.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
    request = urllib.request.Request(url, headers=headers, method=method)
    try:
        response = opener.open(request, timeout=ANSWER_S)
    except urllib.error.HTTPError as error:  # which is the response, too
        response = error
    with response:
        text = response.read(ANSWER_BYTES).decode("utf-8").strip()
        return _Answer(response.status, text, response.headers.get(GOOGLE_FLAVOR[0], ""))


def _good(answer: _Answer) -> str:
    if answer.status != HTTPStatus.OK:
        raise ValueError(f"HTTP {answer.status}")
    return answer.text


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return f"nothing in {ANSWER_S:g} s"
    if isinstance(inner, OSError):
        return inner.strerror or str(inner)
    return str(inner) or type(inner).__name__
