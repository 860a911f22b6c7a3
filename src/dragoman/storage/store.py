"""One folder of an object store: names come in, bytes go out and in."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple

from dragoman.errors import DragomanError, RemoteError, UserError, storage_errors
from dragoman.installation import install_command
from dragoman.rundir import MOST_JSON_BYTES, sync_folder
from dragoman.storage.address import Address
from dragoman.storage.credentials import allows_http, check_credentials
from dragoman.storage.failures import MISSING, TOO_LARGE, failure_of
from dragoman.storage.pace import Pace

PART_BYTES = 5 << 20
"""Of one request: the least that S3 takes as a part of a larger object, so that a line is busy for
as short as possible and no more than this is sent again."""
MOST_PARTS = 9_000
"""S3 allows 10,000 in an object."""
AT_ONCE = 4
"""Parts on their way at the same time, where there is no limit on bytes per second."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a store, and how often to try."""

    retries: int = 6
    retry_s: float = 120.0
    """From the first try of a request after which there is no other."""
    connect_s: float = 10.0
    request_s: float = 120.0
    """For one request, in which at most `PART_BYTES` travel, unless the object is enormous."""


class Entry(NamedTuple):
    name: str
    """Below the folder of the store."""
    bytes: int


class Store:
    """A folder of an object store. May be used by several threads."""

    def __init__(self, address: Address, patience: Patience | None = None) -> None:
        """Raises UserError where obstore or credentials are missing; contacts nobody."""
        self.address = address
        self._patience = patience or Patience()
        self._obstore = import_obstore(address)
        self._is_closed = False
        check_credentials(address, os.environ)
        with self._failures("opening it"):
            # A folder is made by what is put into it, and not by a look at a wrong address.
            is_later = address.scheme == "file" and not address.folder.is_dir()
            self._opened = None if is_later else self._open()

    def close(self) -> None:
        """Lets no request begin, and drops the answers to those on their way: a thread that waits
        for one cannot be ended, and is not to write what nobody waits for any more."""
        self._is_closed = True

    @property
    def _store(self) -> Any:
        if self._opened is None:
            if not self.address.folder.is_dir():
                raise FileNotFoundError(self.address.folder)
            self._opened = self._open()
        return self._opened

    def read(self, name: str, most_bytes: int = MOST_JSON_BYTES) -> bytes:
        """Returns the content of an object, which must not be larger than `most_bytes`."""
        with self._failures("reading", name):
            found = self._obstore.get(self._store, name)
            size = int(found.meta["size"])
            if size > most_bytes:
                raise RemoteError(
                    f"{self.address / name}: has {size:,} bytes, which is more than the "
                    f"{most_bytes:,} that such a file may have; check the address",
                    TOO_LARGE,
                )
            return self._whole(name, bytes(found.bytes()), size)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Returns exactly these bytes of an object; raises where it ends before."""
        if length == 0:
            return b""
        with self._failures("reading", name):
            content = bytes(self._obstore.get_range(self._store, name, start=start, length=length))
        return self._whole(name, content, length)

    def size(self, name: str) -> int | None:
        """Returns the bytes of an object; None: it is not there."""
        try:
            with self._failures("looking for", name):
                return int(self._obstore.head(self._store, name)["size"])
        except RemoteError as error:
            if error.kind == MISSING:
                return None
            raise

    def download(
        self, name: str, path: Path, on_bytes: Callable[[int], None] | None = None
    ) -> None:
        """Writes an object to `path`, whole or not at all; `on_bytes` is told what has arrived."""
        with self._failures("downloading", name):
            head = self._obstore.head(self._store, name)
        size, tag = int(head["size"]), head.get("e_tag")
        beside = path.with_name(f".{path.name}-{os.getpid()}.part")
        try:
            with storage_errors(path, "writing a download"):
                path.parent.mkdir(parents=True, exist_ok=True)
                with beside.open("wb") as file:
                    for start in range(0, size, PART_BYTES):
                        length = min(PART_BYTES, size - start)
                        file.write(self._part(name, start, length, tag))
                        if on_bytes:
                            on_bytes(length)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(path)
                sync_folder(path.parent)
        finally:
            beside.unlink(missing_ok=True)

    def upload(self, name: str, content: bytes | IO[bytes], pace: Pace | None = None) -> int:
        """Puts an object there, whole or not at all; a file is read from where it is, to its end.

        Returns the number of bytes. `pace` may be shared with other uploads.
        """
        self._refuse_to_write()
        pace = pace or Pace(0)
        if isinstance(content, bytes):
            parts, size = iter([content]), len(content)
        else:
            size = os.fstat(content.fileno()).st_size - content.tell()
            parts = _parts(content, max(PART_BYTES, -(-size // MOST_PARTS)))
        with self._failures("uploading", name):
            if self._opened is None:
                self._opened = self._open()
            if size <= PART_BYTES:
                whole = b"".join(parts)
                pace.take(len(whole))
                self._obstore.put(self._store, name, whole, use_multipart=False)
                return len(whole)
            sent = _Counted(parts, pace)
            self._obstore.put(
                self._store,
                name,
                sent,
                chunk_size=max(PART_BYTES, -(-size // MOST_PARTS)),
                max_concurrency=1 if pace.is_limited else AT_ONCE,
            )
        return sent.bytes

    def list(self, folder: str = "") -> list[Entry]:
        """Returns all objects below a folder of this one, sorted by name.

        An empty object may stand for a folder, with whose name programs for people mark it.
        """
        if self.address.scheme in ("http", "https"):
            raise UserError(f"{self.address}: cannot be listed; name an s3://, gs:// or az:// one")
        if self.address.scheme == "file" and not self.address.folder.is_dir():
            return []
        with self._failures("listing", folder):
            found = [
                Entry(str(each["path"]), int(each["size"]))
                for chunk in self._obstore.list(self._store, prefix=folder or None)
                for each in chunk
            ]
        return sorted(entry for entry in found if entry.name)

    def delete(self, names: Sequence[str]) -> None:
        """Removes objects; those that are not there count as removed."""
        self._refuse_to_write()
        for name in names:  # one by one: not every store that speaks S3 removes many at once
            try:
                with self._failures("removing", name):
                    self._obstore.delete(self._store, name)
            except RemoteError as error:
                if error.kind != MISSING:
                    raise

    def _part(self, name: str, start: int, length: int, tag: str | None) -> bytes:
        options: dict[str, Any] = {"range": (start, start + length)}
        if tag:  # so that all parts are of one object, should it be replaced meanwhile
            options["if_match"] = tag
        with self._failures("downloading", name):
            content = bytes(self._obstore.get(self._store, name, options=options).bytes())
        return self._whole(name, content, length)

    def _whole(self, name: str, content: bytes, length: int) -> bytes:
        if len(content) != length:
            raise RemoteError(
                f"{self.address / name}: {len(content):,} bytes have arrived instead of "
                f"{length:,}; check the network, then run the same command again",
                "broken",
            )
        return content

    def _refuse_to_write(self) -> None:
        if self.address.scheme in ("http", "https"):
            raise UserError(f"{self.address}: can only be read; name an s3://, gs:// or az:// one")

    @contextmanager
    def _failures(self, doing: str, name: str = "") -> Iterator[None]:
        self._refuse_if_closed()
        try:
            yield
        except DragomanError:
            raise
        except Exception as error:
            address = self.address / name if name else self.address
            raise failure_of(address, doing.strip(), error) from None
        self._refuse_if_closed()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise RemoteError(f"{self.address}: is not used any more by this process", "closed")

    def _open(self) -> Any:
        address, patience = self.address, self._patience
        store = self._obstore.store
        if address.scheme == "file":
            return store.LocalStore(address.folder, mkdir=True)
        client: dict[str, Any] = {
            "connect_timeout": timedelta(seconds=patience.connect_s),
            "timeout": timedelta(seconds=patience.request_s),
            "allow_http": allows_http(address, os.environ),
        }
        given: dict[str, Any] = {
            "client_options": client,
            "retry_config": {
                "max_retries": patience.retries,
                "retry_timeout": timedelta(seconds=patience.retry_s),
            },
        }
        if address.scheme in ("http", "https"):
            return store.HTTPStore(str(address), **given)
        given["prefix"] = address.path or None
        if address.scheme == "s3":
            return store.S3Store(address.host, **given)
        if address.scheme == "gs":
            return store.GCSStore(address.host, **given)
        return store.AzureStore(address.host, **given)


class _Counted:
    """Parts of an upload, each let go when it is its turn."""

    def __init__(self, parts: Iterator[bytes], pace: Pace) -> None:
        self._parts, self._pace = parts, pace
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            self._pace.take(len(part))
            self.bytes += len(part)
            yield part


def import_obstore(address: Address) -> Any:
    try:
        import obstore  # noqa: PLC0415
        import obstore.store  # noqa: PLC0415
    except ImportError:
        raise UserError(
            f"{address}: object storage needs one more package; {install_command('storage')}"
        ) from None
    return obstore


def _parts(file: IO[bytes], part_bytes: int) -> Iterator[bytes]:
    while part := file.read(part_bytes):
        yield part
