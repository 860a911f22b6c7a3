"""Files from public servers: an address comes in, a whole file in the cache goes out.

The cache mirrors the servers, `<cache>/<host>/<path>`, so a cache that someone copies or serves is
a mirror, and a file brought by hand has one obvious place. Beside each file: `.json`, what was
fetched from where; while it arrives, `.part` and `.part.json`; `.lock`, for those who fetch at the
same time.
"""

import difflib
import fcntl
import fnmatch
import hashlib
import http.client
import io
import logging
import lzma
import os
import re
import shutil
import socket
import ssl
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from email.message import Message
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn, Self, cast

from dragoman import __version__
from dragoman.console import Progress
from dragoman.corpus.text import FREELY_EXPANDED_BYTES, MOST_EXPANDED, regular_file_status
from dragoman.errors import CorruptFileError, StorageError, UserError, storage_errors
from dragoman.rundir import read_json, sha256_of, sync_folder, write_json

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
TIMEOUT_S = 30.0
# Between tries that bring nothing new. A try that comes further than all before it starts anew, so
# a line that breaks every few minutes still brings a large file.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
# Answers that mean "not now": timed out, too many requests, and the server's own troubles.
PASSING_STATUSES = {408, 425, 429, 500, 502, 503, 504}
# A server that sends a byte now and then never runs into the timeout.
SLOWEST_BYTES_PER_S = 100
PACE_WINDOW_S = 60.0
LARGEST_HEADER_BYTES = 1 << 20
SHOWN_CHARACTERS = 100
LARGEST_UNANNOUNCED_BYTES = 100_000_000_000
"""Of a file whose server does not say how long it is; public corpora have a tenth of it."""
KEEP_FREE_BYTES = 100_000_000
"""A disk is not filled further by a download or an archive: other programs need some of it."""

ARCHIVE_SUFFIXES = (".zip", ".tgz", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2")
UNPACKING_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,  # a compression or an encryption that Python does not have
    ValueError,  # numbers and names in headers that are none
)
ZIP_ENCRYPTED = 1  # a bit of zipfile.ZipInfo.flag_bits
MOST_MEMBERS = 100_000
BY_HAND = "unpack it by hand and name its files as a source of kind text"
LARGEST_TAR_HEADER_BYTES = 1 << 20


def fetch(
    url: str,
    cache: Path,
    sha256: str | None = None,
    mirror: str = "",
    *,
    md5: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """The file at `url`, from the cache if it is there, else from its server or from `mirror`.

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
        part = _beside(target, ".part")
        if address.startswith("file:"):
            _copy_from_folder(address, target)
        else:
            _download(address, target, pause)
        wrong = _wrong_hash(part, expected)
        if wrong:
            _forget_part(target)
            _give_up(address, f"its {wrong}; it has changed on the server or on the way", target)
        record = {
            "url": url,
            "from": address,
            "bytes": part.stat().st_size,
            "sha256": sha256_of(part),
            "etag": _part_state(target).get("validator", ""),
            "fetched_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with storage_errors(target, "putting a download into place"):
            # Before the file itself, so that no other process takes that for one brought by hand.
            write_json(_beside(target, ".json"), record)
            part.replace(target)
            sync_folder(target.parent)
        _beside(target, ".part.json").unlink(missing_ok=True)
    return target


def cached_path(url: str, cache: Path) -> Path:
    """Where the file at `url` stands in the cache, and where a person may put it by hand."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"{url}: not an address ({error}); correct it") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{url}: not an address to download from; it should begin with https://")
    segments = [segment for segment in parts.path.split("/") if segment not in ("", ".")]
    if not segments or ".." in (parts.hostname, *segments):
        raise UserError(f"{url}: names no file on its server; check the address")
    names = [parts.hostname + (f":{port}" if port else ""), *segments]
    names[-1] += f"?{parts.query}" if parts.query else ""
    safe = [re.sub(r"[^\w.~%+=,:@-]", "_", name, flags=re.ASCII) for name in names]
    if safe != names:  # two addresses must not become one name
        safe[-1] = f"{hashlib.sha256(url.encode()).hexdigest()[:8]}-{safe[-1]}"
    return cache.joinpath(*safe)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold off others, on this machine and on shared folders, who would make `path` too.

    The lock file stays: removing it would let two processes hold locks on different files.
    """
    with storage_errors(path, "locking it"):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _beside(path, ".lock").open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info(f"waiting for another process that is making {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _address_of(url: str, cache: Path, mirror: str) -> str:
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
    """A file of the cache, refused where it is not the one that was fetched or is asked for.

    It is not replaced: a person may have put it there, on a machine without a network.
    """
    record_file = _beside(target, ".json")
    found_bytes = regular_file_status(target).st_size
    if record_file.exists():
        fetched_bytes = read_json(record_file).get("bytes")
        if fetched_bytes != found_bytes:
            raise UserError(
                f"{target}: has {found_bytes:,} bytes, but {fetched_bytes:,} were fetched; remove "
                f"it to fetch it again, or remove {record_file.name} if you brought it by hand"
            )
    wrong = _wrong_hash(target, expected)
    if wrong:
        raise UserError(
            f"{target}: its {wrong}; remove it to fetch it again, or bring the right file"
        )
    return target


def _wrong_hash(path: Path, expected: dict[str, str | None]) -> str:
    """What is wrong with the content of a file, as the end of "its ..."; empty: nothing."""
    for algorithm, wanted in expected.items():
        if wanted:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, algorithm).hexdigest()
            if found != wanted.lower():
                return f"{algorithm} is {found} and should be {wanted}"
    return ""


# Downloading: a try either completes the part or breaks; what arrived stays for the next.


class _BrokenError(Exception):
    """The connection or the server failed in a way that may pass."""


class _UnreachableError(_BrokenError):
    """Nobody answers there. Worth waiting for only where someone has answered before."""


class _TooSlowError(_BrokenError):
    """What a connection brings is not worth waiting for, even if it is something."""


class _TooLongError(Exception):
    """More arrives than was announced, or than any corpus has."""


class _InsecureRedirectError(Exception):
    """From https to an address where anyone on the way could change the file."""


class _PacedSocket(io.RawIOBase):
    """The bytes of a connection, broken off where waiting for them brings too few of them."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._waited_s = 0.0
        self._received = 0
        self.header_bytes_left: int | None = None
        """None: this is not a header."""

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
                raise _BrokenError("the server's answer has no end before the file begins")
        if self._waited_s > PACE_WINDOW_S:
            if self._received < SLOWEST_BYTES_PER_S * self._waited_s:
                raise _TooSlowError(
                    f"the server sends less than {SLOWEST_BYTES_PER_S} bytes a second"
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


def _download(address: str, target: Path, pause: Callable[[float], None]) -> None:
    part = _beside(target, ".part")
    at_first = farthest = _size_of(part)
    failures = 0
    while True:
        try:
            return _try(address, target)
        except _BrokenError as broken:
            reached = _size_of(part)
            if reached > farthest and not isinstance(broken, _TooSlowError):
                farthest, failures = reached, 0
            hopeless = isinstance(broken, _UnreachableError) and farthest == at_first
            if hopeless or failures == len(PAUSES_S):
                _give_up(address, str(broken), target)
            logger.warning(f"{address}: {broken}; trying again in {PAUSES_S[failures]:.0f} s")
            pause(PAUSES_S[failures])
            failures += 1
        except _TooLongError as error:
            _forget_part(target)
            _give_up(address, str(error), target)


def _try(address: str, target: Path) -> None:
    """Bring the part to its whole length: its rest, where the server can vouch that it has not
    changed since, else all of it.
    """
    part = _beside(target, ".part")
    state = _part_state(target)
    validator = str(state.get("validator", ""))
    if state.get("address") != address or not validator or not part.exists():
        begin = 0  # nothing to continue, or nothing that says it would fit
    else:
        begin = part.stat().st_size
    if begin and begin == state.get("bytes"):
        return
    headers = {"User-Agent": f"dragoman/{__version__}"}
    if begin:
        headers |= {"Range": f"bytes={begin}-", "If-Range": validator}
    with _open(address, headers, target) as response:
        found = _validator(response.headers)
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            span = re.fullmatch(
                r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18})",
                response.headers.get("Content-Range", "").strip(),
            )
            if not span or int(span[1]) != begin or (found and found != validator):
                _forget_part(target)
                raise _BrokenError("the server continues with another file")
            total: int | None = int(span[2])
        else:
            begin = 0
            length = response.headers.get("Content-Length", "")
            total = int(length) if re.fullmatch("[0-9]{1,18}", length) else None
            state = {"address": address, "validator": found, "bytes": total}
            part.unlink(missing_ok=True)
            write_json(_beside(target, ".part.json"), state)
        if total is not None:
            _require_space(total - begin, target)
        title = f"downloading {target.name}" + (" (the rest)" if begin else "")
        with Progress(title, "bytes", total and total - begin) as progress:
            body = _no_longer_than(total, begin, _body(response, progress))
            _write(body, part, target, append=begin > 0)
    reached = _size_of(part)
    if total is not None and reached != total:
        raise _BrokenError(f"the connection ended after {reached:,} of {total:,} bytes")


def _open(address: str, headers: dict[str, str], target: Path) -> http.client.HTTPResponse:
    # Built anew each time: it reads http_proxy, https_proxy and no_proxy when it is built.
    opener = urllib.request.build_opener(_NoDowngrade, _PacedHttp, _PacedHttps)
    try:
        request = urllib.request.Request(address, headers=headers)
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
    except _InsecureRedirectError as error:
        _give_up(address, f"sends us on to {error}, where anyone could change it", target)
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answers {error.code} {_shown(error.reason)}"
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            _forget_part(target)
            raise _BrokenError("the server's file is shorter than what has arrived") from error
        if error.code in PASSING_STATUSES:
            raise _BrokenError(reason) from error
        _give_up(address, reason, target)
    except urllib.error.URLError as error:
        cause = error.reason
        if isinstance(cause, ssl.SSLCertVerificationError):
            _give_up(address, f"its certificate does not hold ({cause.verify_message})", target)
        if isinstance(cause, socket.gaierror):
            raise _UnreachableError(
                "no server of that name is known here; is there a network?"
            ) from error
        if isinstance(cause, ConnectionRefusedError):
            raise _UnreachableError("the server refuses the connection") from error
        raise _BrokenError(f"the connection failed ({cause})") from error
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(f"the connection broke ({_shown(error)})") from error
    except ValueError as error:
        reason = f"it, or where it sends us on to, is not an address ({_shown(error)})"
        _give_up(address, reason, target)
    return response


def _no_longer_than(total: int | None, begin: int, body: Iterable[bytes]) -> Iterator[bytes]:
    """The rest of a file of which `begin` bytes are there and `total` were announced."""
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


def _require_space(size: int, target: Path) -> None:
    """Refuse to write what would fill the disk, before it does."""
    free = shutil.disk_usage(target.parent).free
    if size > free - KEEP_FREE_BYTES:
        reason = (
            f"{size / 1e6:,.0f} MB do not fit into {free / 1e6:,.0f} MB of free space, of which "
            f"{KEEP_FREE_BYTES / 1e6:,.0f} MB are to stay free"
        )
        raise StorageError(target, "writing it", reason)


def _shown(answer: object) -> str:
    """What a server says, which may be a page or a terminal's commands, as a part of a sentence."""
    text = str(answer)[:SHOWN_CHARACTERS]
    return "".join(character if character.isprintable() else "?" for character in text)


def _body(response: http.client.HTTPResponse, progress: Progress) -> Iterator[bytes]:
    try:
        while chunk := response.read1(CHUNK_BYTES):
            yield chunk
            progress.advance(len(chunk))
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(f"the connection broke ({_shown(error)})") from error


def _chunks(file: IO[bytes], progress: Progress) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
        progress.advance(len(chunk))


def _validator(headers: Message) -> str:
    """What If-Range may carry: a strong ETag, else the date of the last change."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _part_state(target: Path) -> dict[str, Any]:
    try:
        return read_json(_beside(target, ".part.json"))
    except CorruptFileError:  # not there, or torn: the part cannot be continued
        return {}


def _forget_part(target: Path) -> None:
    for suffix in (".part", ".part.json"):
        _beside(target, suffix).unlink(missing_ok=True)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _copy_from_folder(address: str, target: Path) -> None:
    origin = Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
    _forget_part(target)
    try:
        size = regular_file_status(origin).st_size
        _require_space(size, target)
        with (
            origin.open("rb") as file,
            Progress(f"copying {target.name}", "bytes", size) as progress,
        ):
            _write(_chunks(file, progress), _beside(target, ".part"), target)
    except OSError as error:
        _give_up(address, f"cannot be read ({error.strerror or error})", target)


def _write(chunks: Iterable[bytes], part: Path, target: Path, append: bool = False) -> None:
    """Only the writing is the disk's fault; what the chunks raise is somebody else's."""
    doing = f"writing {part.name}"
    with storage_errors(target, doing):
        file = part.open("ab" if append else "wb")
    try:
        for chunk in chunks:
            _require_space(len(chunk), target)
            with storage_errors(target, doing):
                file.write(chunk)
        with storage_errors(target, doing):
            file.flush()
            os.fsync(file.fileno())
    finally:
        with storage_errors(target, doing):
            file.close()


# Archives


def extract_member(archive: Path, member: str, into: Path) -> Path:
    return extract_members(archive, [member], into)[0]


def extract_members(archive: Path, members: Sequence[str], into: Path) -> list[Path]:
    """Files of an archive, written below `into` under their names there, in the order asked for.

    A name may hold the wildcards of the shell and must then fit one file. What is there already in
    full length is not written again. A file that is no archive is its own only member.
    """
    if not is_archive(archive):
        if list(members) != [archive.name]:
            raise UserError(f"{archive}: not an archive; it holds {archive.name} alone")
        return [archive]
    with locked(into / archive.name), _unpacking_errors(archive):
        return _extract(archive, [PurePosixPath(member).as_posix() for member in members], into)


def extract_all(archive: Path, into: Path) -> None:
    """Every file of an archive, written below `into`."""
    with (
        _unpacking_errors(archive),
        closing(_entries(archive)) as entries,
        Progress(f"unpacking {archive.name}", "bytes") as shown,
    ):
        for name, size, open_entry in entries:
            _put(open_entry, size, _inside(into, name, archive), shown)


@contextmanager
def _unpacking_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except UNPACKING_ERRORS as error:
        raise UserError(
            f"{archive}: cannot be unpacked ({error}); remove it and run the same command again"
        ) from error


def is_archive(path: Path) -> bool:
    return path.name.endswith(ARCHIVE_SUFFIXES)


def _extract(archive: Path, members: list[str], into: Path) -> list[Path]:
    found: dict[str, str] = {}
    names = []
    # Where all names are plain, the rest of the archive need not be read once they are found.
    plain = not any(re.search(r"[*?\[]", member) for member in members)
    with (
        closing(_entries(archive)) as entries,
        Progress(f"unpacking {archive.name}", "bytes") as shown,
    ):
        for name, size, open_entry in entries:
            names.append(name)
            asked_as = [m for m in members if name == m or fnmatch.fnmatchcase(name, m)]
            for member in asked_as:
                if found.setdefault(member, name) != name:
                    raise UserError(
                        f"{archive}: {member} fits {found[member]} and {name}; name one of them"
                    )
            target = _inside(into, name, archive) if asked_as else None
            if target is None or (target.exists() and target.stat().st_size == size):
                shown.advance(size)
            else:
                _put(open_entry, size, target, shown)
            if plain and len(found) == len(set(members)):
                break
    for member in members:
        if member not in found:
            near = difflib.get_close_matches(member, names, n=5, cutoff=0.3) or names[:5]
            raise UserError(
                f"{archive}: holds no {member}; of its {len(names):,} files the nearest are: "
                + (", ".join(near) or "none")
            )
    return [into / found[member] for member in members]


class _TarHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        # Names and attributes, which are read into memory whole.
        if not (header.isfile() or header.isdir()) and header.size > LARGEST_TAR_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {header.size:,} bytes")
        return header


def _entries(archive: Path) -> Generator[tuple[str, int, Callable[[], IO[bytes]]], None, None]:
    """Name, size and a way to read every regular file, in the order of the archive.

    A tar archive is read as a stream: an entry can be read only before the next one is asked for.
    Archives that expand to far more than they hold, or to too many files, are refused on the way.
    """
    expanded = 0
    most_expanded = FREELY_EXPANDED_BYTES + MOST_EXPANDED * archive.stat().st_size
    entries = _zip_entries(archive) if archive.suffix == ".zip" else _tar_entries(archive)
    with closing(entries):
        for name, size, open_entry in entries:
            expanded += size
            if expanded > most_expanded:
                raise UserError(
                    f"{archive}: its {archive.stat().st_size:,} bytes expand to {expanded:,} or "
                    f"more with {name}, as no text does; check what it is, and if it is good, "
                    f"{BY_HAND}"
                )
            yield _plain_name(name), size, open_entry


def _zip_entries(archive: Path) -> Generator[tuple[str, int, Callable[[], IO[bytes]]], None, None]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            if info.flag_bits & ZIP_ENCRYPTED:
                raise UserError(f"{archive}: {info.filename} is encrypted; {BY_HAND}")
            if not info.is_dir():
                yield info.filename, info.file_size, partial(zipped.open, info)


def _tar_entries(archive: Path) -> Generator[tuple[str, int, Callable[[], IO[bytes]]], None, None]:
    with tarfile.open(archive, "r|*", tarinfo=_TarHeader) as tar:
        for number, member in enumerate(tar):
            if number == MOST_MEMBERS:
                raise UserError(
                    f"{archive}: has more than {MOST_MEMBERS:,} members, too many for a corpus; "
                    f"{BY_HAND}"
                )
            if member.isfile():
                reader = cast(Callable[[], IO[bytes]], partial(tar.extractfile, member))
                yield member.name, member.size, reader


def _plain_name(name: str) -> str:
    return PurePosixPath(name).as_posix()  # ./a/b and a//b are a/b


def _inside(folder: Path, name: str, archive: Path) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise UserError(
            f"{archive}: {name} leads out of the folder it should be unpacked to, so nothing was "
            "unpacked; check where the archive comes from"
        )
    return folder / path


def _put(open_entry: Callable[[], IO[bytes]], size: int, target: Path, shown: Progress) -> None:
    part = _beside(target, ".part")
    with storage_errors(target, "making its folder"):
        target.parent.mkdir(parents=True, exist_ok=True)
    _require_space(size, target)
    with open_entry() as file:
        _write(_chunks(file, shown), part, target)
    with storage_errors(target, "putting it into place"):
        part.replace(target)
