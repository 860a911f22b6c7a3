"""What a person sees while waiting: lines, and a bar on a terminal or plain lines elsewhere."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import rich.progress
from rich.console import Console

QUIET_S = 2.0
PLAIN_EVERY_S = 5.0


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Whoever has read our output is gone; what writes it, a run say, goes on without them."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


_console = _Console(highlight=False, soft_wrap=True)
_error_console = _Console(highlight=False, soft_wrap=True, stderr=True)


def open_missing_streams() -> None:
    """A program that was started with its output closed writes to nowhere instead."""
    nowhere = Path(os.devnull)
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def say(text: str = "") -> None:
    _console.print(text, markup=False)


def warn(text: str) -> None:
    with suppress(BrokenPipeError):
        print(f"warning: {text}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """12 s, 3 min 5 s, 2 h 10 min, 1 d 4 h: two units, so that it reads at a glance."""
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
    """Shows how far a piece of work is, once it has taken longer than a person likes to wait.

    On a terminal: a bar that goes away when the work is done. Elsewhere: a line now and then.
    """

    def __init__(
        self, title: str, unit: str, total: int | None = None, to_stderr: bool = False
    ) -> None:
        self._title, self._unit, self._total = title, unit, total
        self._console = _error_console if to_stderr else _console
        self._done = 0
        self._begun = time.monotonic()
        self._next_show = self._begun + QUIET_S
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def advance(self, amount: int = 1) -> None:
        self._done += amount
        if self._done % 256 and amount == 1:
            return  # looking at the clock for each of millions of pairs would be felt
        now = time.monotonic()
        if now < self._next_show:
            return
        if self._console.is_terminal:
            self._next_show = now + 0.1
            self._draw_bar()
        else:
            self._next_show = now + PLAIN_EVERY_S
            of_total = f" of {self._total:,}" if self._total else ""
            rate = self._done / (now - self._begun)
            self._console.print(
                f"{self._title}: {self._done:,}{of_total} {self._unit} ({rate:,.0f}/s)",
                markup=False,
            )

    def _draw_bar(self) -> None:
        if self._bar is None:
            self._bar = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}"),
                rich.progress.BarColumn(),
                rich.progress.TextColumn("{task.completed:,.0f} {task.fields[unit]}"),
                rich.progress.TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._bar.add_task(self._title, total=self._total, unit=self._unit)
            self._bar.start()
        self._bar.update(rich.progress.TaskID(0), completed=self._done)


class StatusLine:
    """One line that tells how things are: rewritten in place on a terminal, printed elsewhere."""

    def __init__(self, plain_every_s: float) -> None:
        self._every_s = 0.2 if _console.is_terminal else plain_every_s
        self._next_show = 0.0
        self._shown = False

    def is_due(self) -> bool:
        return time.monotonic() >= self._next_show

    def show(self, text: str) -> None:
        self._next_show = time.monotonic() + self._every_s
        if _console.is_terminal:
            self.clear()
            sys.stdout.write(text[: _console.width - 1])
            sys.stdout.flush()
            self._shown = True
        else:
            say(text)

    def clear(self) -> None:
        if self._shown:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self._shown = False
