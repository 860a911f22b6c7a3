"""Signals that end a command, turned into an exit that cleans up behind itself."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def orderly_termination() -> Iterator[None]:
    """While open, SIGTERM and SIGHUP raise SystemExit. Also a decorator.

    By default they end the process at once: unfinished files and folders would stay, and a terminal
    at which a line is being edited would no longer show what is typed. A signal that is ignored or
    handled already, as SIGHUP is under nohup, stays so.
    """
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]

    def leave(number: int, frame: FrameType | None) -> None:
        for each in numbers:  # a second one must not interrupt the cleaning up
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in numbers:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
