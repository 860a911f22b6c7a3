"""Addresses of object stores: text comes in, a checked address goes out."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast
from urllib.parse import unquote, urlsplit

from dragoman.errors import UserError

Scheme = Literal["s3", "gs", "az", "https", "http", "file"]

EXAMPLES = "s3://bucket/folder, gs://bucket/folder, az://container/folder or file:///folder"
_SCHEMES = ("s3", "gs", "az", "https", "http", "file")
_BEGINNING = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._-]{0,254}")


@dataclass(frozen=True)
class Address:
    scheme: Scheme
    host: str
    """The bucket or container; for https a server, and for file nothing."""
    path: str
    """Within it, without a slash at either end."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{self.path}".rstrip("/")

    def __truediv__(self, name: str) -> "Address":
        return replace(self, path=f"{self.path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> "Address":
        return replace(self, path=self.path.rpartition("/")[0])

    @property
    def folder(self) -> Path:
        """Where a file address leads."""
        return Path("/") / self.path


def is_address(text: str) -> bool:
    """Returns whether the text is written like an address of any kind, right or wrong."""
    return _BEGINNING.match(text) is not None


def parse_address(text: str) -> Address:
    """Returns the address; raises UserError for anything else.

    An address with a login or a query is refused without being repeated: both are where people put
    credentials, and a recipe is copied to hosts and shown in reports.
    """
    found = _BEGINNING.match(text)
    if not found or found[1].lower() not in _SCHEMES:
        shown = f"an address that begins with {found[1]}://" if found else repr(text[:100])
        raise UserError(f"{shown} cannot be used; write it as {EXAMPLES}")
    scheme = cast(Scheme, found[1].lower())
    rest = text[found.end() :]
    if "@" in rest.partition("/")[0] or "?" in rest or "#" in rest:
        raise UserError(
            f"the address that begins with {scheme}:// has a login or a query, which may hold a "
            "secret; leave it out and put credentials into the environment, such as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    try:
        host = urlsplit(text).netloc
    except ValueError:
        host = ""
    path = rest.partition("/")[2].removesuffix("/")
    if scheme in ("http", "https", "file"):
        path = unquote(path)
    if not all(character.isprintable() for character in text):
        raise UserError(f"{text!r}: holds characters that cannot be printed; write it anew")
    if any(part in ("", ".", "..") for part in path.split("/")) and path:
        raise UserError(f"{text}: has an empty part, '.' or '..' in its path; write it without")
    if scheme == "file":
        if host or not path:
            raise UserError(f"{text}: should name a folder from the root on: file:///folder")
    elif not host or (scheme not in ("http", "https") and not _BUCKET.fullmatch(host)):
        raise UserError(f"{text}: names no bucket; write it as {EXAMPLES}")
    return Address(scheme, host, path)
