"""Extracts files from archives that may be truncated, huge or hostile."""

import difflib
import fnmatch
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Self, cast

from dragoman.console import Progress
from dragoman.corpus.download.disk import (
    beside,
    chunks,
    locked,
    require_space,
    write_chunks,
)
from dragoman.corpus.text import FREELY_EXPANDED_BYTES, MOST_EXPANDED
from dragoman.errors import UserError, storage_errors

ARCHIVE_SUFFIXES = (".zip", ".tgz", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2")
UNPACKING_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,  # a compression or an encryption that Python does not have
    ValueError,  # invalid numbers and names in headers
)
ZIP_ENCRYPTED = 1  # a bit of zipfile.ZipInfo.flag_bits
MOST_MEMBERS = 100_000
BY_HAND = "unpack it by hand and name its files as a source of kind text"
LARGEST_TAR_HEADER_BYTES = 1 << 20


def extract_member(archive: Path, member: str, into: Path) -> Path:
    return extract_members(archive, [member], into)[0]


def extract_members(archive: Path, members: Sequence[str], into: Path) -> list[Path]:
    """Extracts files of an archive below `into` under their own names, in the order requested.

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
    """Extracts every file of an archive below `into`."""
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
    """Yields name, size and a reader of every regular file, in the order of the archive.

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
                    f"more with {name}, as no text does; check what it is, and if it is valid, "
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
            f"{archive}: {name} points outside the folder to unpack to, so nothing was "
            "unpacked; check where the archive comes from"
        )
    return folder / path


def _put(open_entry: Callable[[], IO[bytes]], size: int, target: Path, shown: Progress) -> None:
    part = beside(target, ".part")
    with storage_errors(target, "making its folder"):
        target.parent.mkdir(parents=True, exist_ok=True)
    require_space(size, target)
    with open_entry() as file:
        write_chunks(chunks(file, shown), part, target)
    with storage_errors(target, "putting it into place"):
        part.replace(target)
