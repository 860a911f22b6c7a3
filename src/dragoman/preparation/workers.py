"""Who does the tasks of a stage: this process, or processes beside it.

`dask_workers` has the other kind, on other machines. What they log is logged by this process, as if
it had done the work itself.
"""

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
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
    """As many processes as there are cores for, started when there is work for two of them."""

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
                while len(running) < AHEAD * self._cores and (following := next(left, None)):
                    future = self._started().submit(do_there, following, is_written=True)
                    running[future] = following
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield finish(running.pop(future), future.result())
        except BrokenProcessPool:
            raise RunError(
                "a process that prepares data was killed, perhaps since memory ran out; free some "
                "and run the same command again: what is finished stays"
            ) from None
        finally:
            for future in running:
                future.cancel()

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("spawn")  # a fork would copy the caller's threads
            level = logging.getLogger("dragoman").getEffectiveLevel()
            self._pool = ProcessPoolExecutor(self._cores, context, _begin, (level,))
        return self._pool


def _begin(level: int) -> None:
    logging.getLogger("dragoman").setLevel(level)
    logging.getLogger("dragoman").addHandler(logging.NullHandler())
