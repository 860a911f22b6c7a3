"""Files that grow for hours and are whole or not there: lines come in, also to be compressed."""

import bz2
import gzip
import lzma
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from dragoman.errors import UserError, storage_errors


def _gzip(file: IO[bytes]) -> IO[bytes]:
    # Without a name and a time, the same text gives the same bytes.
    return cast(IO[bytes], gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0))


def _xz(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], lzma.LZMAFile(file, "wb"))


def _bz2(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], bz2.BZ2File(file, "wb"))


_COMPRESSORS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": _gzip,
    ".xz": _xz,
    ".bz2": _bz2,
}


def check_output(path: Path) -> None:
    """Refuses, before the work, a file that cannot be written."""
    if stat.S_ISDIR(mode_of(path)):
        raise UserError(f"{path}: is a folder; name a file with --output")
    if path.suffix == ".zst":
        raise UserError(f"{path}: .zst files are read and not written; name one that ends with .gz")


def mode_of(path: Path) -> int:
    """Returns the file mode of `path`, with links followed; 0 if there is nothing yet."""
    with storage_errors(path, "writing translations"):
        try:
            return path.stat().st_mode
        except FileNotFoundError:
            return 0


@contextmanager
def whole_file(path: Path) -> Iterator[Callable[[str], None]]:
    """Yields a function that writes text. The file appears when the block is left without error.

    What stood there before stays until then. Links are followed; a pipe or a device is written to
    at once. The text is compressed if the name says so, such as .gz.
    """
    mode = mode_of(path)
    is_file = not mode or stat.S_ISREG(mode)
    # Inside, errors of the block itself pass through: only those of writing are about this file.
    with ExitStack() as stack:
        with storage_errors(path, "writing translations"):
            if is_file:
                final = path.resolve()
                final.parent.mkdir(parents=True, exist_ok=True)
                beside = final.with_name(f".{final.name}-{secrets.token_hex(8)}")
                descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                stack.callback(beside.unlink, missing_ok=True)
                file: IO[bytes] = os.fdopen(descriptor, "wb")
            else:
                file = path.open("wb")
        stack.callback(_close_quietly, file)
        compressor = file
        if path.suffix in _COMPRESSORS:
            compressor = _COMPRESSORS[path.suffix](file)
            stack.callback(_close_quietly, compressor)

        def write(text: str) -> None:
            with storage_errors(path, "writing translations"):
                compressor.write(text.encode())
                if not is_file:
                    compressor.flush()

        yield write
        with storage_errors(path, "writing translations"):
            if compressor is not file:
                compressor.close()
            file.flush()
            if is_file:
                os.fsync(file.fileno())
                if mode:
                    beside.chmod(stat.S_IMODE(mode))
                beside.replace(final)


def _close_quietly(file: IO[bytes]) -> None:
    """Closes a file after an error, which has been reported: what it still holds is not needed."""
    with suppress(OSError, ValueError):
        file.close()
