"""Lines of text files, plain or compressed: UTF-8, and never split where a line does not end."""

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import UserError

_OPENERS: dict[str, Callable[[Path], AbstractContextManager[Iterable[bytes]]]] = {
    ".gz": gzip.GzipFile,
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}


def _open_plain(path: Path) -> BinaryIO:
    return path.open("rb")


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a file, white space at their ends removed."""
    opener = _OPENERS.get(path.suffix, _open_plain)
    try:
        with opener(path) as file:
            yield from decode_lines(file, str(path))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check its name and its folder") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise UserError(f"{path}: cannot be read to its end ({error}); bring it again") from error


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines end at line feeds alone. Splitting at the other line separators of Unicode, as text
    mode and str.splitlines do, shifts one side of a corpus against the other from there on.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}, line {number}: not UTF-8 ({error.reason} at byte {error.start}); "
                "convert it, for example with iconv -t UTF-8"
            ) from error
