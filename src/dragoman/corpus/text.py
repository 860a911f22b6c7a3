"""Reads lines of text files, plain or compressed, in UTF-8, split only at line feeds."""

import bz2
import gzip
import importlib
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Protocol

from dragoman.errors import UserError
from dragoman.installation import install_command

LONGEST_LINE_BYTES = 10_000_000
"""A longer line is not a sentence: it is another kind of file, or an archive bomb."""

MOST_EXPANDED = 200
"""Most times that a file may expand. Text shrinks to a third or a fifth, rarely to a hundredth."""

FREELY_EXPANDED_BYTES = 20_000_000
"""Allowed at any ratio: a small archive of the same few lines does no harm."""

COUNTED_BYTES = 50_000_000
"""Of text whose lines are counted before it is read; takes a fraction of a second."""

BLOCK_BYTES = 1 << 16
"""Bytes read at a time. Decoding a block costs less than decoding each of its lines."""


class ByteReader(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a file, white space at their ends removed."""
    return map(str.strip, read_raw_lines(path))


def read_raw_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a file without their line feeds; tabs at the ends may be columns."""
    with open_binary(path) as file:
        yield from _decode(_whole_lines(file), str(path))


def about_lines(path: Path, most_bytes: int = COUNTED_BYTES) -> int | None:
    """Returns how many lines a file has; beyond `most_bytes` of text, about how many.

    None: it is compressed and has more than that, or cannot be read, which its reader will say.
    """
    lines = read_bytes = 0
    last = b"\n"
    try:
        with open_binary(path) as file:
            while block := file.read1(BLOCK_BYTES):
                lines, read_bytes, last = lines + block.count(b"\n"), read_bytes + len(block), block
                if read_bytes >= most_bytes:
                    is_plain = path.suffix not in _OPENERS
                    return round(lines * path.stat().st_size / read_bytes) if is_plain else None
    except UserError:
        return None
    return lines + (not last.endswith(b"\n"))


def decode_lines(file: ByteReader, name: str, first_line: int = 1) -> Iterator[str]:
    """Yields the lines of an open file as they arrive, without their line feeds.

    `first_line` is the number of the line at which it is read from, for errors.
    """
    return _decode(_whole_lines(file), name, first_line)


def one_line(text: str) -> str:
    """Returns a text that may hold line breaks on one line, with single spaces.

    No-break and other typographic spaces stay: they are part of the language.
    """
    for character in "\t\r\n":
        text = text.replace(character, " ")
    return " ".join(filter(None, text.split(" "))).strip()


def regular_file_status(path: Path) -> os.stat_result:
    """Returns size and times of a regular file; refuses pipes and devices, which have no end."""
    status = path.stat()
    for holds, what in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if holds(status.st_mode):
            raise UserError(f"{path}: is {what}, not a regular file; name a file")
    return status


@contextmanager
def open_binary(path: Path) -> Iterator[ByteReader]:
    """Yields the bytes of a file, plain or compressed, in blocks; UserError if unreadable."""
    try:
        size = regular_file_status(path).st_size
        opener = _OPENERS.get(path.suffix)
        if opener is None:
            with path.open("rb") as plain:
                yield plain
        else:
            with opener(path) as file:
                yield _Expanding(file, path, size)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check its name and its folder") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read to its end ({error}); get it again") from error


class _Expanding:
    """The content of a compressed file, refused if it expands more than any text does."""

    def __init__(self, file: ByteReader, path: Path, compressed_bytes: int) -> None:
        self._file, self._path, self._compressed_bytes = file, path, compressed_bytes
        self._left = FREELY_EXPANDED_BYTES + MOST_EXPANDED * compressed_bytes

    def read1(self, size: int, /) -> bytes:
        block = self._file.read1(size)
        self._left -= len(block)
        if self._left < 0:
            raise UserError(
                f"{self._path}: its {self._compressed_bytes:,} bytes expand to more than "
                f"{MOST_EXPANDED} times as many, as no text does; check what it is, and if it is "
                "good, name the file that it was made of"
            )
        return block


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Streams:
    """Compressed streams one after the other in a file, to the last of its bytes.

    BZ2File and LZMAFile take a stream with a damaged header for the end of the file, and silently
    lose all that follows.
    """

    def __init__(self, file: IO[bytes], begin: Callable[[], _Decompressor], padding: bytes) -> None:
        self._file, self._begin, self._padding = file, begin, padding
        self._stream = begin()

    def read1(self, size: int, /) -> bytes:
        while True:
            compressed = b""
            if self._stream.eof:
                compressed = self._next_stream()
                if not compressed:
                    return b""
                self._stream = self._begin()
            elif self._stream.needs_input:
                compressed = self._file.read(BLOCK_BYTES)
                if not compressed:
                    raise EOFError("it ends in the middle of a compressed stream")
            if block := self._stream.decompress(compressed, size):
                return block

    def _next_stream(self) -> bytes:
        """Returns the first bytes of the next stream, without padding; empty at the end."""
        block = self._stream.unused_data or self._file.read(BLOCK_BYTES)
        while block:
            if begun := block.lstrip(self._padding):
                return begun
            block = self._file.read(BLOCK_BYTES)
        return b""


@contextmanager
def _open_bz2(path: Path) -> Iterator[ByteReader]:
    with path.open("rb") as file:
        yield _Streams(file, bz2.BZ2Decompressor, padding=b"")


@contextmanager
def _open_xz(path: Path) -> Iterator[ByteReader]:
    with path.open("rb") as file:
        yield _Streams(file, lzma.LZMADecompressor, padding=b"\0")  # the format allows it


@contextmanager
def _open_zstd(path: Path) -> Iterator[ByteReader]:
    # Not the zstandard package: it takes an archive that was cut off for one that ended.
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        zstd = importlib.import_module(module)
    except ImportError:
        raise UserError(
            f"{path}: reading .zst files needs one more package; {install_command('zstd')}"
        ) from None
    try:
        with zstd.ZstdFile(path) as file:
            yield file
    except zstd.ZstdError as error:
        raise OSError(str(error)) from error


_OPENERS: dict[str, Callable[[Path], AbstractContextManager[ByteReader]]] = {
    ".gz": gzip.GzipFile,
    ".xz": _open_xz,
    ".bz2": _open_bz2,
    ".zst": _open_zstd,
}
COMPRESSIONS = tuple(_OPENERS)
"""Endings of files that are read as if they were not compressed."""


def _whole_lines(file: ByteReader) -> Iterator[bytes]:
    """Yields blocks that end where a line ends. A line that is too long is cut, to be refused."""
    rest = bytearray()
    while block := file.read1(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if end:
            yield bytes(rest + block[:end])
            rest = bytearray(block[end:])
        else:
            rest += block
            if len(rest) > LONGEST_LINE_BYTES:
                break
    if rest:
        yield bytes(rest)


def _decode(blocks: Iterable[bytes], name: str, first_line: int = 1) -> Iterator[str]:
    """Lines end at line feeds alone. Splitting at the other line separators of Unicode, as text
    mode and str.splitlines do, shifts one side of a corpus against the other from there on.
    """
    number = first_line
    for block in blocks:
        text = _decode_block(block, name, number)
        if number == 1:
            text = text.removeprefix("\ufeff")  # the byte order mark of some editors
        lines = text.removesuffix("\n").split("\n")
        yield from lines
        number += len(lines)


def _decode_block(block: bytes, name: str, number: int) -> str:
    """Returns the text of a block whose first line has this number."""

    def line_at(position: int) -> str:
        line_feeds = block.count(b"\n", 0, position)
        return f"{name}, line {number + line_feeds}"

    # Lines are joined from several reads only at the start of a block, so no other can be as long.
    if len(block) > LONGEST_LINE_BYTES and b"\n" not in block[: LONGEST_LINE_BYTES + 1]:
        raise UserError(
            f"{line_at(0)}: longer than {LONGEST_LINE_BYTES / 1e6:g} MB; "
            "a corpus has one sentence per line, so check that this is a text file"
        )
    if (nul := block.find(b"\0")) >= 0:
        raise UserError(
            f"{line_at(nul)}: holds a NUL byte, as binary files and UTF-16 do; "
            "convert it, for example with iconv -f UTF-16 -t UTF-8"
        )
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.start - (block.rfind(b"\n", 0, error.start) + 1)
        raise UserError(
            f"{line_at(error.start)}: not UTF-8 ({error.reason} at byte {byte}); "
            "convert it, for example with iconv -t UTF-8"
        ) from error


def is_unicode(text: str) -> bool:
    """Returns whether UTF-8 can hold a text; it cannot hold half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
