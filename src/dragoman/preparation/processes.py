"""Does the same work on several cores: each process takes its share of the slices.

What the processes log is logged by the caller's process, as if it had done the work itself.
"""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from dragoman.config import Config
from dragoman.console import Progress
from dragoman.preparation.slices import Share

Advance = Callable[[int], None]
Work = Callable[[Config, Share, Advance], None]

_STOP = -(1 << 60)
_done: "Synchronized[int]"


class Stopped(Exception):  # noqa: N818 - not an error: another process has failed and reports it
    pass


def in_parallel(
    work: Work, config: Config, cores: int, title: str, total: int | None, is_about: bool = False
) -> None:
    """Runs all shares of `work`; a failure stops the other processes at their next slice.

    `total` is the number of pairs, or `is_about` that.
    """
    with Progress(title, "pairs", total, is_about=is_about) as progress, progress.ticking():
        if cores == 1:
            work(config, Share(0, 1), progress.advance)
            return
        context = get_context("spawn")  # a fork would copy the caller's threads
        done, records = context.Value("q", 0), context.Queue()
        level = logging.getLogger("dragoman").getEffectiveLevel()
        with (
            _logged_here(records),
            ProcessPoolExecutor(cores, context, _begin, (done, records, level)) as pool,
        ):
            shares = [pool.submit(_run, work, config, Share(n, cores)) for n in range(cores)]
            shown, waiting = 0, set(shares)
            while waiting:
                finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
                if any(share.exception() for share in finished):
                    done.value = _STOP
                elif done.value > shown:
                    progress.advance(done.value - shown)
                    shown = done.value
    failures = [error for share in shares if (error := share.exception())]
    for error in failures:
        if not isinstance(error, Stopped):
            raise error


@contextmanager
def _logged_here(records: "Queue[Any]") -> Iterator[None]:
    listener = QueueListener(records, _Relogging())
    listener.start()
    try:
        yield
    finally:
        listener.stop()


class _Relogging(logging.Handler):
    """Passes a record of another process to the logger of the same name in this one."""

    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger(record.name).handle(record)


def _begin(done: Any, records: "Queue[Any]", level: int) -> None:
    global _done  # noqa: PLW0603 - a process's own; the executor has no other way to hand it over
    _done = done
    logging.getLogger("dragoman").addHandler(QueueHandler(records))
    logging.getLogger("dragoman").setLevel(level)


def _run(work: Work, config: Config, share: Share) -> None:
    def advance(count: int) -> None:
        with _done.get_lock():
            if _done.value < 0:
                raise Stopped
            _done.value += count

    work(config, share, advance)
