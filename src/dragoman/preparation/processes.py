"""The same work on several cores: each process takes its share of the slices."""

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from dragoman.config import Config
from dragoman.console import Progress
from dragoman.preparation.slices import Share

Advance = Callable[[int], None]
Work = Callable[[Config, Share, Advance], None]

_STOP = -(1 << 60)
_done: "Synchronized[int]"


class Stopped(Exception):  # noqa: N818 - not an error: another process has failed and says why
    pass


def in_parallel(work: Work, config: Config, cores: int, title: str, total: int | None) -> None:
    """Do all shares of `work`; the first failure stops the other processes at their next slice."""
    with Progress(title, unit="pairs", total=total) as progress:
        if cores == 1:
            work(config, Share(0, 1), progress.advance)
            return
        context = get_context("spawn")  # a fork would copy the threads of whoever calls
        done = context.Value("q", 0)
        with ProcessPoolExecutor(cores, context, _remember, (done,)) as pool:
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


def _remember(done: Any) -> None:
    global _done  # noqa: PLW0603 - a process's own; the executor has no other way to hand it over
    _done = done


def _run(work: Work, config: Config, share: Share) -> None:
    def advance(count: int) -> None:
        with _done.get_lock():
            if _done.value < 0:
                raise Stopped
            _done.value += count

    work(config, share, advance)
