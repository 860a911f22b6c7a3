"""The cache of files from public servers, where every file is complete and verified."""

import hashlib
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from dragoman.console import Progress
from dragoman.corpus.download.connection import HopelessError
from dragoman.corpus.download.disk import beside, chunks, locked, require_space, write_chunks
from dragoman.corpus.download.resumable import download, forget_part, part_state
from dragoman.corpus.text import regular_file_status
from dragoman.errors import UserError, storage_errors
from dragoman.rundir import read_json, sha256_of, sync_folder, write_json
from dragoman.storage import Store, parse_address

STORES = ("s3://", "gs://", "az://")
"""Beginnings of addresses in object stores, which need a package and credentials."""


def fetch(
    url: str,
    cache: Path,
    sha256: str | None = None,
    mirror: str = "",
    *,
    md5: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """Returns the file at `url`, from the cache if it is there, else from its server or `mirror`.

    A file in the cache is compared with the size it was fetched with, and with the hashes that are
    given; it needs no network.
    """
    target = cached_path(url, cache)
    address = _address_of(url, cache, mirror)
    expected = {"sha256": sha256, "md5": md5}
    if target.exists():
        return _kept(target, expected)
    with locked(target):
        if target.exists():  # another process has fetched it while this one waited
            return _kept(target, expected)
        part = beside(target, ".part")
        try:
            if address.startswith("file:"):
                _copy_from_folder(address, target)
            elif address.startswith(STORES):
                _copy_from_store(address, target)
            else:
                download(address, target, pause)
        except HopelessError as error:
            _give_up(address, str(error), target)
        wrong = _wrong_hash(part, expected)
        if wrong:
            forget_part(target)
            _give_up(address, f"its {wrong}; it has changed on the server or on the way", target)
        record = {
            "url": url,
            "from": address,
            "bytes": part.stat().st_size,
            "sha256": sha256_of(part),
            "etag": part_state(target).get("validator", ""),
            "fetched_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with storage_errors(target, "putting a download into place"):
            # Before the file itself, so that no other process takes that for one placed by hand.
            write_json(beside(target, ".json"), record)
            part.replace(target)
            sync_folder(target.parent)
        beside(target, ".part.json").unlink(missing_ok=True)
    return target


def cached_path(url: str, cache: Path) -> Path:
    """Returns the place of the file at `url` in the cache, where a user may also put it by hand."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"{url}: not an address ({error}); correct it") from None
    is_stored = url.startswith(STORES)
    if is_stored:
        parse_address(url)
    elif parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{url}: not an address to download from; it should begin with https://")
    segments = [segment for segment in parts.path.split("/") if segment not in ("", ".")]
    # A bucket may have the name of a server.
    host = f"{parts.scheme}:{parts.netloc}" if is_stored else parts.hostname or ""
    if not segments or ".." in (host, *segments):
        raise UserError(f"{url}: names no file on its server; check the address")
    names = [host + (f":{port}" if port else ""), *segments]
    names[-1] += f"?{parts.query}" if parts.query else ""
    safe = [re.sub(r"[^\w.~%+=,:@-]", "_", name, flags=re.ASCII) for name in names]
    if safe != names:  # two addresses must not become one name
        safe[-1] = f"{hashlib.sha256(url.encode()).hexdigest()[:8]}-{safe[-1]}"
    return cache.joinpath(*safe)


def _address_of(url: str, cache: Path, mirror: str) -> str:
    if not mirror and url.startswith(STORES):
        return url
    if not mirror:
        parts = urllib.parse.urlsplit(url)
        return parts._replace(path=urllib.parse.quote(parts.path, safe="/%:=&+,;@~")).geturl()
    if not mirror.startswith(("http://", "https://", "file:///")):
        raise UserError(
            f"data.mirror = {mirror!r}: should begin with https://, http:// or file:///"
        )
    relative = cached_path(url, cache).relative_to(cache).as_posix()
    return f"{mirror.rstrip('/')}/{urllib.parse.quote(relative)}"


def _give_up(address: str, reason: str, target: Path) -> NoReturn:
    raise UserError(
        f"{address}: {reason}; put the file at {target} by hand, or name a copy of the server in "
        "data.mirror, then run the same command again"
    )


def _kept(target: Path, expected: dict[str, str | None]) -> Path:
    """Returns a file of the cache; refuses one that is not what was downloaded or requested.

    It is not replaced: a person may have put it there, on a machine without a network.
    """
    record_file = beside(target, ".json")
    found_bytes = regular_file_status(target).st_size
    if record_file.exists():
        fetched_bytes = read_json(record_file).get("bytes")
        if fetched_bytes != found_bytes:
            raise UserError(
                f"{target}: has {found_bytes:,} bytes, but {fetched_bytes:,} were fetched; remove "
                f"it to fetch it again, or remove {record_file.name} if you put it there by hand"
            )
    wrong = _wrong_hash(target, expected)
    if wrong:
        raise UserError(
            f"{target}: its {wrong}; remove it to fetch it again, or replace it by the right file"
        )
    return target


def _wrong_hash(path: Path, expected: dict[str, str | None]) -> str:
    """Returns what is wrong with the content of a file, to follow "its"; empty if nothing."""
    for algorithm, wanted in expected.items():
        if wanted:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, algorithm).hexdigest()
            if found != wanted.lower():
                return f"{algorithm} is {found} and should be {wanted}"
    return ""


def _copy_from_folder(address: str, target: Path) -> None:
    origin = Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
    forget_part(target)
    try:
        size = regular_file_status(origin).st_size
        require_space(size, target)
        with (
            origin.open("rb") as file,
            Progress(f"copying {target.name}", "bytes", size) as progress,
        ):
            write_chunks(chunks(file, progress), beside(target, ".part"), target)
    except OSError as error:
        raise HopelessError(f"cannot be read ({error.strerror or error})") from error


def _copy_from_store(address: str, target: Path) -> None:
    found = parse_address(address)
    store = Store(found.parent)
    forget_part(target)
    size = store.size(found.name)
    if size is None:
        raise HopelessError("there is no such object")
    require_space(size, target)
    with Progress(f"downloading {target.name}", "bytes", size) as progress:
        store.download(found.name, beside(target, ".part"), progress.advance)
