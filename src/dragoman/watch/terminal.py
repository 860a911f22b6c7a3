"""Runs in a terminal: one screen that is drawn again every second until q is pressed.

Whatever happens, the terminal is left as it was found.
"""

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType

from rich.console import Console, Group

from dragoman.console import echo
from dragoman.rundir import RunDir
from dragoman.watch.content import Watched
from dragoman.watch.run_watch import RunWatch
from dragoman.watch.screen import screen_of

EVERY_S = 1.0
PLAIN_WAIT_S = 120.0
"""So long the first reports are waited for where one screen is printed."""
PLAIN_WIDTH = 100
QUIT_KEYS = b"qQ\x03\x04"


def watch_in_terminal(runs: Sequence[RunDir]) -> None:
    """Returns when the user has had enough; where there is no terminal, after one screen."""
    console = Console(highlight=False)
    with ExitStack() as at_end:
        watches = [RunWatch(run) for run in runs]
        for watch in watches:
            at_end.callback(watch.close)
        if console.is_terminal and not console.is_dumb_terminal:
            _show(console, watches)
        else:
            _print_once(watches)


def _print_once(watches: Sequence[RunWatch]) -> None:
    """Prints all there is, without colors."""
    until = time.monotonic() + PLAIN_WAIT_S
    every = [watch.refresh() for watch in watches]
    while any(_waits(watched) for watched in every) and time.monotonic() < until:
        time.sleep(0.1)
        every = [watch.refresh() for watch in watches]
    is_ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else PLAIN_WIDTH
    for line in screen_of(every, width, None, is_ascii):
        echo(line.plain.rstrip())


def _waits(watched: Watched) -> bool:
    return watched.report is None and not watched.now.trouble


def _show(console: Console, watches: Sequence[RunWatch]) -> None:
    with _signals() as woken:
        while True:
            with _keys() as keys, console.screen(hide_cursor=True):
                why = _until_key(console, watches, keys, woken)
            if why != "stop":
                return
            os.kill(os.getpid(), signal.SIGSTOP)  # goes on here after `fg`


def _until_key(console: Console, watches: Sequence[RunWatch], keys: int | None, woken: int) -> str:
    """Returns quit or stop."""
    every = [watch.refresh() for watch in watches]
    while True:
        size = console.size
        lines = screen_of(every, size.width, size.height, console.options.ascii_only)
        console.update_screen(Group(*lines))
        due_at = time.monotonic() + EVERY_S
        while (left_s := due_at - time.monotonic()) > 0:
            ready, _, _ = select.select([f for f in (keys, woken) if f is not None], [], [], left_s)
            if keys in ready:
                pressed = os.read(keys or 0, 64)
                if not pressed:
                    keys = None  # standard input has ended
                elif any(key in QUIT_KEYS for key in pressed):
                    return "quit"
            if woken in ready:
                signals = os.read(woken, 64)
                if signal.SIGTSTP in signals:
                    return "stop"
                if signal.SIGINT in signals:
                    return "quit"
                break  # another size: drawn at once, from what is known
        else:
            every = [watch.refresh() for watch in watches]


@contextmanager
def _keys() -> Iterator[int | None]:
    """Yields where single keys can be read, unseen; None: there is no keyboard."""
    if not sys.stdin.isatty():
        yield None
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSANOW)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def _signals() -> Iterator[int]:
    """Yields where the numbers of signals can be read that are for the loop; those that end the
    process do so by an exception, which puts the terminal in order."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)

    def note(number: int, frame: FrameType | None) -> None:
        os.write(writes, bytes([number]))

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    handlers = {
        **dict.fromkeys((signal.SIGWINCH, signal.SIGTSTP, signal.SIGINT), note),
        **dict.fromkeys((signal.SIGTERM, signal.SIGHUP), end),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield reads
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reads)
        os.close(writes)
