"""Who does the tasks of a stage: this process, and others beside it.

`dask_workers` has the other kind, on other machines. What they log is logged by this process, as if
it had done the work itself.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import get_context, parent_process, resource_tracker
from types import TracebackType
from typing import Protocol

from dragoman.console import Progress
from dragoman.errors import RunError
from dragoman.preparation.task import Done, Task, do_there, finish

AHEAD = 2
"""Tasks that are made for each process, so that none waits for its next one."""


class Workers(Protocol):
    def do(self, tasks: Iterable[Task]) -> Iterator[int]:
        """Does the tasks in any order; yields the pairs of each once its result is written.

        Tasks are made as they are needed, since they may carry text. The first error ends it.
        """
        ...


def run_tasks(
    workers: Workers, tasks: Iterable[Task], title: str, total: int | None, is_about: bool = False
) -> None:
    """Does all tasks and shows how far they are; `total` counts pairs, or `is_about` that many."""
    with Progress(title, "pairs", total, is_about=is_about) as progress, progress.ticking():
        for pairs in workers.do(tasks):
            progress.advance(pairs)


class LocalWorkers:
    """This process, and others for all cores but one, started when there is work for two.

    To start a process takes as long as to clean some ten thousand pairs. So this one, which has
    started already, does its share.
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "LocalWorkers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def do(self, tasks: Iterable[Task]) -> Iterator[int]:
        left = iter(tasks)
        first = list(islice(left, 2))
        if self._cores == 1 or (len(first) < 2 and not self._pool):
            for task in chain(first, left):
                result = task.do()
                task.keep(result)
                yield result.pairs
            return
        left, running = chain(first, left), dict[Future[Done], Task]()
        try:
            while True:
                own = next(left, None)
                room = AHEAD * (self._cores - 1)
                while len(running) < room and (following := next(left, None)):
                    running[self._submit(following)] = following
                if own:
                    result = own.do()
                    own.keep(result)
                    yield result.pairs
                elif not running:
                    return
                # This process waits only if there is nothing that it could do itself.
                waited = wait(running, 0 if own else None, FIRST_COMPLETED)
                for future in waited.done:
                    yield finish(running.pop(future), future.result())
        except BrokenProcessPool:
            raise RunError(
                "a process that prepares data was killed, perhaps since memory ran out; free some "
                "and run the same command again: what is finished stays"
            ) from None
        finally:
            for future in running:
                future.cancel()

    def _submit(self, task: Task) -> Future[Done]:
        if self._pool is None:
            context = get_context("spawn")  # a fork would copy the caller's threads
            level = logging.getLogger("dragoman").getEffectiveLevel()
            self._pool = ProcessPoolExecutor(self._cores - 1, context, _begin, (level,))
        with _without_interrupts():  # this is when processes are started
            return self._pool.submit(do_there, task, is_written=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keeps Ctrl-C from processes that are started now: a terminal sends it to all of them, and
    each would print where it was. This process gets it a little later, and ends them."""
    resource_tracker.ensure_running()  # its start would allow interrupts again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(level: int) -> None:
    threading.Thread(target=_end_with_parent, name="parent watch", daemon=True).start()
    logging.getLogger("dragoman").setLevel(level)
    logging.getLogger("dragoman").addHandler(logging.NullHandler())


def _end_with_parent() -> None:
    """Ends this process when its parent is gone: it would wait for the next task for ever."""
    parent = parent_process()
    assert parent
    parent.join()
    os._exit(1)
