"""Downloads in as many tries as it takes: each continues the part that the one before has left, in
this process or another.
"""

import http.client
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any

from dragoman import __version__
from dragoman.console import Progress
from dragoman.corpus.download.connection import (
    BrokenError,
    HopelessError,
    StalePartError,
    TooSlowError,
    UnreachableError,
    open_address,
    shown,
)
from dragoman.corpus.download.disk import CHUNK_BYTES, beside, require_space, size_of, write_chunks
from dragoman.errors import CorruptFileError
from dragoman.rundir import read_json, write_json

logger = logging.getLogger(__name__)

# Pauses between tries without progress. A try that gets further than all before it resets them, so
# a connection that breaks every few minutes still completes a large file.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
LARGEST_UNANNOUNCED_BYTES = 100_000_000_000
"""Most bytes of a file whose server announces no length; public corpora have a tenth of it."""


class _TooLongError(Exception):
    """More arrives than was announced, or than any corpus has."""


def download(address: str, target: Path, pause: Callable[[float], None]) -> None:
    """Completes the part of `target`; raises `HopelessError` if that fails."""
    part = beside(target, ".part")
    at_first = farthest = size_of(part)
    failures = 0
    while True:
        try:
            return _try(address, target)
        except BrokenError as broken:
            if isinstance(broken, StalePartError):
                forget_part(target)
            reached = size_of(part)
            if reached > farthest and not isinstance(broken, TooSlowError):
                farthest, failures = reached, 0
            hopeless = isinstance(broken, UnreachableError) and farthest == at_first
            if hopeless or failures == len(PAUSES_S):
                raise HopelessError(str(broken)) from broken
            logger.warning(f"{address}: {broken}; trying again in {PAUSES_S[failures]:.0f} s")
            pause(PAUSES_S[failures])
            failures += 1
        except _TooLongError as error:
            forget_part(target)
            raise HopelessError(str(error)) from error


def part_state(target: Path) -> dict[str, Any]:
    try:
        return read_json(beside(target, ".part.json"))
    except CorruptFileError:  # missing or truncated: the part cannot be continued
        return {}


def forget_part(target: Path) -> None:
    for suffix in (".part", ".part.json"):
        beside(target, suffix).unlink(missing_ok=True)


def _try(address: str, target: Path) -> None:
    """Downloads the rest of the part if the server confirms that it is unchanged, else all."""
    part = beside(target, ".part")
    state = part_state(target)
    validator = str(state.get("validator", ""))
    if state.get("address") != address or not validator or not part.exists():
        begin = 0  # nothing to continue, or no validator to match it
    else:
        begin = part.stat().st_size
    if begin and begin == state.get("bytes"):
        return
    headers = {"User-Agent": f"dragoman/{__version__}"}
    if begin:
        headers |= {"Range": f"bytes={begin}-", "If-Range": validator}
    with open_address(address, headers) as response:
        found = _validator(response.headers)
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            span = re.fullmatch(
                r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18})",
                response.headers.get("Content-Range", "").strip(),
            )
            if not span or int(span[1]) != begin or (found and found != validator):
                raise StalePartError("the server continues with another file")
            total: int | None = int(span[2])
        else:
            begin = 0
            length = response.headers.get("Content-Length", "")
            total = int(length) if re.fullmatch("[0-9]{1,18}", length) else None
            state = {"address": address, "validator": found, "bytes": total}
            part.unlink(missing_ok=True)
            write_json(beside(target, ".part.json"), state)
        if total is not None:
            require_space(total - begin, target)
        title = f"downloading {target.name}" + (" (the rest)" if begin else "")
        with Progress(title, "bytes", total and total - begin) as progress:
            body = _no_longer_than(total, begin, _body(response, progress))
            write_chunks(body, part, target, append=begin > 0)
    reached = size_of(part)
    if total is not None and reached != total:
        raise BrokenError(f"the connection ended after {reached:,} of {total:,} bytes")


def _no_longer_than(total: int | None, begin: int, body: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the rest of a file of which `begin` bytes are there and `total` were announced."""
    reached = begin
    for chunk in body:
        reached += len(chunk)
        if total is not None and reached > total:
            raise _TooLongError(f"the server sends more than the {total:,} bytes it announced")
        if reached > LARGEST_UNANNOUNCED_BYTES and total is None:
            raise _TooLongError(
                "the server announces no length and has sent more than "
                f"{LARGEST_UNANNOUNCED_BYTES / 1e9:g} GB"
            )
        yield chunk


def _body(response: http.client.HTTPResponse, progress: Progress) -> Iterator[bytes]:
    try:
        while chunk := response.read1(CHUNK_BYTES):
            yield chunk
            progress.advance(len(chunk))
    except (http.client.HTTPException, OSError) as error:
        raise BrokenError(f"the connection broke ({shown(error)})") from error


def _validator(headers: Message) -> str:
    """Returns what If-Range may carry: a strong ETag, else the date of the last change."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")
