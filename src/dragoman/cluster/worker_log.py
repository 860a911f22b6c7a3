"""The output of a run's processes comes in, records of the logger `dragoman.workers` go out.

For callers from Python, who get lines as records and keep their own output to themselves.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen
from typing import IO

logger = logging.getLogger("dragoman.workers")

LAST_LINES_S = 5.0
"""How long to wait for lines still in a pipe after the process at its other end has ended."""
_LEVELS = {"warning: ": logging.WARNING, "error: ": logging.ERROR}


def _lines(stream: IO[str]) -> Iterator[str]:
    with suppress(ValueError):  # closed while being read: nobody needs it any more
        for line in stream:
            yield line.rstrip("\n")


class WorkerLog:
    def __init__(self) -> None:
        self.errors: list[str] = []
        """Error messages of workers that failed, the first one first."""

    @contextmanager
    def following(self, process: Popen[str]) -> Iterator[None]:
        """While open, both streams of `process` are read and logged."""
        threads = [
            threading.Thread(target=self._read, args=stream, daemon=True)
            for stream in ((process.stdout, logging.INFO), (process.stderr, logging.WARNING))
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join(LAST_LINES_S)

    def _read(self, stream: IO[str], usual_level: int) -> None:
        """Logs each line at the level that it begins with, or at `usual_level`.

        Indented lines belong to the line before them.
        """
        level = usual_level
        for line in _lines(stream):
            prefix = next((p for p in _LEVELS if line.startswith(p)), "")
            text = line
            if usual_level > logging.INFO and prefix:
                level, text = _LEVELS[prefix], line.removeprefix(prefix)
                if level == logging.ERROR:
                    self.errors.append(text)
            elif not line.startswith(" "):
                level = usual_level
            elif level == logging.ERROR:
                self.errors[-1] += f"\n{line}"
            # The caller's filters may fail; a pipe that nobody reads would hold up the training.
            with suppress(Exception):
                logger.log(level, text)
