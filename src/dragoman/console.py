"""Command-line output: log records as lines, and progress bars.

Nothing is shown before `console_output` is entered, which only programs do: whoever uses Dragoman
as a library gets the same lines as records of the logger `dragoman`.
"""

import errno
import logging
import os
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import rich.errors
import rich.progress
from rich.console import Console
from rich.text import Text

logger = logging.getLogger(__name__)
_all_logs = logging.getLogger("dragoman")

WAIT_LOGGED_AFTER_S, WAIT_LOGGED_EVERY_S = 10.0, 60.0

QUIET_S = 2.0
PLAIN_EVERY_S = 5.0
TICK_S = 0.2
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tabs and line feeds."""


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        with self.going_on():
            super().print(*objects, **options)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Goes on where the terminal that is written to was closed."""
        try:
            yield
        except OSError as error:
            if error.errno != errno.EIO:  # such as a full disk, which is told
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Continues without output: its reader is gone, but the run is not done."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


_console = _Console(highlight=False, soft_wrap=True)
_error_console = _Console(highlight=False, soft_wrap=True, stderr=True)


def open_missing_streams() -> None:
    """Replaces closed standard streams by /dev/null."""
    nowhere = Path(os.devnull)
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def visible(text: str) -> str:
    """Returns text of unknown origin with control characters as escapes, such as \\x1b.

    A terminal would follow them: move the cursor, hide text, or change its title.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def echo(text: str | Text = "") -> None:
    _console.print(text, markup=False)


@contextmanager
def console_output() -> Iterator[None]:
    """While open, log records of Dragoman and bars are shown on this process's output.

    Records go nowhere else then: a library that configures logging must not show them twice.
    """
    dragoman = _all_logs
    level, propagate = dragoman.level, dragoman.propagate
    handlers = (_Lines(logging.INFO), _Complaints(logging.WARNING))
    for handler in handlers:
        dragoman.addHandler(handler)
    dragoman.setLevel(logging.INFO)
    dragoman.propagate = False
    try:
        yield
    finally:
        dragoman.setLevel(level)
        dragoman.propagate = propagate
        for handler in handlers:
            dragoman.removeHandler(handler)


def _is_shown() -> bool:
    return any(isinstance(handler, _Lines) for handler in _all_logs.handlers)


def _console_of_lines() -> _Console:
    """Returns where records are shown: standard output unless told otherwise."""
    for handler in _all_logs.handlers:
        if isinstance(handler, _Lines):
            return handler.console
    return _console


def log_to_stderr() -> None:
    """Shows all records on standard error until `console_output` is left.

    For commands whose standard output is a result for another program: translations, or JSON.
    """
    for handler in _all_logs.handlers:
        if isinstance(handler, _Lines):
            handler.console = _error_console


class _Lines(logging.Handler):
    """Shows records below WARNING, on standard output unless told otherwise."""

    console = _console

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            self.console.print(self.format(record), markup=False)


class _Complaints(logging.Handler):
    """Shows warnings and errors, on standard error.

    It is a handler of its own since a handler has a lock, and a reader of one stream who is slow
    must not hold up the other.
    """

    def emit(self, record: logging.LogRecord) -> None:
        kind = "warning" if record.levelno < logging.ERROR else "error"
        with suppress(BrokenPipeError), _error_console.going_on():
            print(f"{kind}: {self.format(record)}", file=sys.stderr, flush=True)


class KeepingHandler(logging.Handler, ABC):
    """A handler that is also given what a terminal shows for a moment only, and last errors."""

    @abstractmethod
    def keep(self, text: str) -> None: ...

    @abstractmethod
    def keep_last_error(self, text: str) -> None:
        """Takes no lock that another thread may hold."""


def _keeping() -> list[KeepingHandler]:
    handlers = _all_logs.handlers  # looking for a logger by its name would take a lock
    return [handler for handler in handlers if isinstance(handler, KeepingHandler)]


def write_last_error(text: str) -> None:
    """Writes an error before `os._exit`, past logging and buffers.

    Another thread may hold their locks and never come back; nothing would flush them afterwards.
    """
    with suppress(OSError):
        os.write(2, f"error: {text}\n".encode(errors="backslashreplace"))
    for handler in _keeping():
        handler.keep_last_error(text)


def duration(seconds: float) -> str:
    """Returns 12 s, 3 min 5 s, 2 h 10 min or 1 d 4 h: at most two units."""
    whole = max(0, round(seconds))
    for size, unit, smaller_size, smaller in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller_size
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


class Progress:
    """Shows the progress of a piece of work, and the time left, once it takes longer than a moment.

    On a terminal: a bar that goes away when the work is done. Elsewhere: a line now and then, which
    is a log record where there is no command line. Where nothing can be counted, use `waiting`.
    """

    def __init__(
        self,
        title: str,
        unit: str,
        total: int | None = None,
        to_stderr: bool = False,
        is_about: bool = False,
    ) -> None:
        """`total` is how much there is to do, or `is_about` that."""
        self._title, self._unit, self._total, self._is_about = title, unit, total, is_about
        self._console = _error_console if to_stderr else _console_of_lines()
        self._is_shown = _is_shown()
        self._done = 0
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._next_show = self._begun + QUIET_S
        self._bar: rich.progress.Progress | None = None
        # Reading the clock for each of millions of pairs would be slow.
        self._look_every = 256 if total is None or total > 256 * 256 else 1

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._bar:
            with self._console.going_on():
                self._bar.stop()

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """While open, the progress is shown by the clock, also while none is made."""
        ended = threading.Event()

        def tick() -> None:
            while not ended.wait(TICK_S):
                self._show()

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            ended.set()
            ticker.join()

    def advance(self, amount: int = 1) -> None:
        """Counts work that was done, from any thread; 0: none, but it may be time to show it."""
        with self._lock:
            self._done += amount
            is_due = amount != 1 or self._done % self._look_every == 0
        if is_due:
            self._show()

    def reach(self, done: int) -> None:
        """Sets how much was done so far."""
        with self._lock:
            self._done = done
        self._show()

    def _show(self) -> None:
        with self._lock:  # by whoever advances, or by the clock
            now = time.monotonic()
            if now < self._next_show:
                return
            if self._is_shown and self._console.is_terminal:
                self._next_show = now + 0.1
                self._draw_bar(now)
                return
            self._next_show = now + PLAIN_EVERY_S
            of_bytes = " MB" if self._unit == "bytes" else ""
            rate = (
                f" ({self._amount(self._done / max(1e-9, now - self._begun))}{of_bytes}/s)"
                if self._unit
                else ""
            )
            words = [f"{self._title}: {self._counted(now)}{rate}", self._left(now)]
            text = ", ".join(filter(None, words))
            if self._is_shown:
                self._console.print(text, markup=False)
            else:
                logger.info(text)

    def _counted(self, now: float) -> str:
        if not self._unit:
            return duration(now - self._begun)
        total = ""
        if self._total and self._done <= self._total:
            total = f" of {'about ' if self._is_about else ''}{self._amount(self._total)}"
        unit = "MB" if self._unit == "bytes" else self._unit
        return f"{self._amount(self._done)}{total} {unit}"

    def _amount(self, value: float) -> str:
        return f"{value / 1e6:,.1f}" if self._unit == "bytes" else f"{value:,.0f}"

    def _left(self, now: float) -> str:
        """Returns the time left, if as much as so far is done in the same time; empty: unknown."""
        done = self._done if self._unit else now - self._begun
        if not self._total or not 0 < done < self._total:
            return ""
        left_s = (now - self._begun) * (self._total - done) / done
        return f"about {duration(left_s)} left"

    def _draw_bar(self, now: float) -> None:
        if self._bar is None:
            bar = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}", markup=False),
                rich.progress.BarColumn(),
                rich.progress.TextColumn("{task.fields[counted]}", markup=False),
                rich.progress.TextColumn("{task.fields[left]}", markup=False),
                console=self._console,
                transient=True,
            )
            bar.add_task(self._title, total=self._total, counted="", left="")
            try:
                bar.start()
            except rich.errors.LiveError:  # a bar of work that this is a part of
                return
            self._bar = bar
        done = self._done if self._unit else now - self._begun
        self._bar.update(
            rich.progress.TaskID(0),
            completed=done,
            counted=self._counted(now),
            left=self._left(now),
        )


@contextmanager
def waiting(
    title: str,
    expected_s: float | None = None,
    to_stderr: bool = False,
    on_terminal_only: bool = False,
) -> Iterator[None]:
    """Shows by the clock that something takes long of which nothing can be counted.

    With `expected_s`, how long it usually takes, also the time left. `on_terminal_only` is for
    commands that other programs call, to which such a line would be noise.
    """
    console = _error_console if to_stderr else _console_of_lines()
    if on_terminal_only and not console.is_terminal:
        yield
        return
    expected = max(1, round(expected_s)) if expected_s else None
    with Progress(title, "", expected, to_stderr) as progress, progress.ticking():
        yield


class WaitLog:
    """Logs that something has been waited for: after a while, and then again and again."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._next_at = self._begun + WAIT_LOGGED_AFTER_S

    def show(self, what: Callable[[], str]) -> None:
        """`what` is only asked for where a line is due."""
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + WAIT_LOGGED_EVERY_S
            logger.info(f"has waited for {duration(now - self._begun)} for {what()}")


class StatusLine:
    """One line about the state of the work: rewritten in place on a terminal, logged elsewhere."""

    def __init__(self, plain_every_s: float, to_stderr: bool = False) -> None:
        self._console = _error_console if to_stderr else _console
        self._to_stderr = to_stderr
        self._in_place = _is_shown() and self._console.is_terminal
        self._plain_every_s = plain_every_s
        self._every_s = 0.2 if self._in_place else plain_every_s
        self._next_show = self._next_keep = 0.0
        self._shown = False

    def is_due(self) -> bool:
        return time.monotonic() >= self._next_show

    def show(self, text: str) -> None:
        now = time.monotonic()
        self._next_show = now + self._every_s
        if self._in_place:
            self.clear()
            self._write(text[: self._console.width - 1])
            self._shown = True
            if now >= self._next_keep:
                self._next_keep = now + self._plain_every_s
                for handler in _keeping():
                    handler.keep(text)
        elif self._to_stderr and _is_shown():
            self._console.print(text, markup=False)
        else:
            logger.info(text)

    def clear(self) -> None:
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text: str) -> None:
        stream = sys.stderr if self._to_stderr else sys.stdout
        with self._console.going_on():
            stream.write(text)
            stream.flush()
