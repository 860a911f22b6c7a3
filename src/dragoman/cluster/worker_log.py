"""What the processes of a run print comes in, records of the logger `dragoman.workers` go out.

For callers from Python, who get lines as records and whose own output stays as it is.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen
from typing import IO

logger = logging.getLogger("dragoman.workers")

LAST_LINES_S = 5.0
"""For lines that are in a pipe when the process at its other end has gone."""
_LEVELS = {"warning: ": logging.WARNING, "error: ": logging.ERROR}


def _lines(stream: IO[str]) -> Iterator[str]:
    with suppress(ValueError):  # closed while being read: nobody waits for it any more
        for line in stream:
            yield line.rstrip("\n")


class WorkerLog:
    def __init__(self) -> None:
        self.errors: list[str] = []
        """What workers that failed said about it, the first of them first."""

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
        """Standard error is logged at the level that a line begins with, output at `usual_level`.

        Lines that are indented belong to the line before them.
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
            logger.log(level, text)
