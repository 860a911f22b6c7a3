"""The log files of a run: lines come in, plain text of bounded size in its folder `logs` goes out.

Every process that takes part writes files of its own, named after it and the time at which it began
them, in UTC: `node2-rank-0001-20261118T093000Z.log`. A file that is full is followed by another.
Of one writer the first file is kept, which shows how it all began, and the newest ones.
"""

import calendar
import logging
import os
import re
import shlex
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman import __version__
from dragoman.console import KeepingHandler
from dragoman.errors import DragomanError, FailedElsewhereError
from dragoman.rundir import RunDir, has_id
from dragoman.telemetry.record.redaction import redacted

logger = logging.getLogger(__name__)

MOST_FILE_BYTES = 4_000_000
MOST_FILES = 8
"""Of one writer; beyond that those in the middle are removed."""
MOST_WAITING_LINES = 1000
"""Lines that wait for their run directory, or for room; of more, the oldest are lost."""
LAST_S = 5.0
"""How long a disk may take for the last lines of a process."""
TIME = "%Y%m%dT%H%M%SZ"
LOG_NAME = re.compile(r"(?P<writer>\w[\w.:-]*)-\d{8}T\d{6}Z\.log")


LAUNCHER = "launcher"


def rank_writer(host: str, rank: int) -> str:
    return f"{host}-rank-{rank:04d}"


def agent_writer(host: str) -> str:
    return f"{host}-agent"


class LogFile:
    """Appends lines, each with its time, on a thread of its own: callers never wait for a disk.

    A disk that refuses lines stops nothing: some wait for it, older ones are lost. With `run_id`,
    lines wait until the folder is known to be this run's; another run's is left alone.
    """

    def __init__(
        self, run: RunDir, writer: str, secrets: Sequence[str] = (), run_id: str = ""
    ) -> None:
        self._run, self._secrets, self._run_id = run, secrets, run_id
        self._writer = re.sub(r"[^\w.:-]", "_", writer).lstrip(".:-") or "_"
        self._descriptor: int | None = None
        self._size_bytes = 0
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING_LINES)
        self._lock = threading.Lock()
        self._has_news, self._is_closing = threading.Event(), False
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """From any thread."""
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e3):03d}Z"
        line = f"{stamp} {redacted(text, self._secrets)}\n"
        self._waiting.append(line.encode(errors="backslashreplace"))
        self._has_news.set()

    def write_last(self, text: str) -> None:
        """Writes before the process exits at once, for as long as a disk may reasonably take."""
        self.write(text)
        thread = threading.Thread(target=self._write_waiting, name="last log", daemon=True)
        thread.start()
        thread.join(LAST_S)

    def close(self) -> None:
        self._is_closing = True
        self._has_news.set()
        self._thread.join(LAST_S)

    def _work(self) -> None:
        while not self._is_closing:
            self._has_news.wait()
            self._has_news.clear()
            self._write_waiting()
        self._write_waiting()
        self._end_file()

    def _write_waiting(self) -> None:
        with self._lock, suppress(OSError):
            if self._run_id and not has_id(self._run, self._run_id):
                return
            self._run_id = ""
            while self._waiting:
                self._append(self._waiting[0])
                self._waiting.popleft()

    def _append(self, line: bytes) -> None:
        if self._descriptor is None or self._size_bytes + len(line) > MOST_FILE_BYTES:
            self._begin_file()
        assert self._descriptor is not None
        line = line if len(line) <= MOST_FILE_BYTES else line[: MOST_FILE_BYTES - 1] + b"\n"
        self._size_bytes += os.write(self._descriptor, line)

    def _begin_file(self) -> None:
        self._end_file()
        self._run.logs.mkdir(exist_ok=True)  # not a run that was removed meanwhile
        at = time.time()
        if earlier := _files_of(self._run.logs, self._writer):  # the order of names is that of time
            newest = earlier[-1].stem.removeprefix(f"{self._writer}-")
            at = max(at, calendar.timegm(time.strptime(newest, TIME)) + 1)
        path = self._run.logs / f"{self._writer}-{time.strftime(TIME, time.gmtime(at))}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o666)
        remove_excess(self._run.logs, self._writer)

    def _end_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._size_bytes = None, 0


def remove_excess(logs: Path, writer: str) -> None:
    """Removes files of this writer until there are no more than allowed: neither the first nor the
    newest ones."""
    for path in _files_of(logs, writer)[1 : 1 - MOST_FILES]:
        path.unlink(missing_ok=True)


def _files_of(logs: Path, writer: str) -> list[Path]:
    """Returns the files of a writer, oldest first."""
    named = ((LOG_NAME.fullmatch(path.name), path) for path in logs.glob("*.log"))
    return sorted(path for found, path in named if found and found["writer"] == writer)


class LogFileHandler(KeepingHandler):
    """Writes log records to a file, with their level unless it is the usual one."""

    def __init__(self, file: LogFile) -> None:
        super().__init__(logging.INFO)
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        self._file.write(f"{level}{self.format(record)}")

    def keep(self, text: str) -> None:
        self._file.write(text)

    def keep_last_error(self, text: str) -> None:
        self._file.write_last(f"error: {text}")


@contextmanager
def kept_log(
    run: RunDir, writer: str, secrets: Sequence[str] = (), command: Sequence[str] = ()
) -> Iterator[None]:
    """While open, what Dragoman logs in this process is also kept in a file of the run.

    Its first line names the process and its command, if that is given. Its last is the error with
    which the context is left, with a traceback if nobody expected it.
    """
    file = LogFile(run, writer, secrets)
    handler = LogFileHandler(file)
    of_command = f": {shlex.join(command)}" if command else ""
    file.write(f"process {os.getpid()}, Dragoman {__version__}{of_command}")
    dragoman = logging.getLogger("dragoman")
    dragoman.addHandler(handler)
    try:
        yield
    except DragomanError as error:
        elsewhere = isinstance(error, FailedElsewhereError)  # which has no words of its own
        file.write(f"error: {'another rank has failed' if elsewhere else error}")
        raise
    except BaseException as error:
        file.write(logging.Formatter().formatException((type(error), error, error.__traceback__)))
        raise
    finally:
        dragoman.removeHandler(handler)
        handler.close()
        file.close()
