"""A thread that communicates while the main one computes."""

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch.futures import Future

Result = TypeVar("Result")

END_S = 5.0
"""How long the end of a run waits for what is on its way; after a failure it may be stuck."""


class _Task(NamedTuple, Generic[Result]):
    work: Callable[[], Result]
    made: torch.cuda.Event | None
    """When the device has made what is to be sent; None on a CPU, where it has."""
    done: "Future[Result | Exception]"


class Courier:
    """Does what it is given one after the other, in the order in which it was given.

    One thread, so that all ranks communicate in the same order. What it does must use process
    groups of its own, since other messages must not come in between.
    """

    def __init__(self, device: torch.device, name: str) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._tasks: queue.SimpleQueue[_Task[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work_off, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], Result]) -> "Future[Result]":
        """Returns what the work will return; it fails where the work does."""
        made = None
        if self._stream:
            made = torch.cuda.Event()  # type: ignore[no-untyped-call]
            made.record(torch.cuda.current_stream(self._device))
        done: Future[Result | Exception] = Future(devices=[self._device] if self._stream else None)
        self._tasks.put(_Task(work, made, done))
        # An exception that is set on a future does not reach DDP, which waits outside of Python;
        # one that is raised in a callback does.
        return done.then(_result)

    def close(self) -> bool:
        """Ends the thread; nothing may be on its way, unless the run has failed.

        Returns whether it has ended: otherwise it still uses its process groups.
        """
        self._tasks.put(None)
        self._thread.join(timeout=END_S)
        return not self._thread.is_alive()

    def _work_off(self) -> None:
        with torch.cuda.stream(self._stream):  # of None, it does nothing
            while task := self._tasks.get():
                try:
                    if self._stream and task.made:
                        self._stream.wait_event(task.made)
                    task.done.set_result(task.work())
                except Exception as error:  # raised again where the result is waited for
                    task.done.set_result(error)


def _result(done: "Future[Result | Exception]") -> Result:
    result = done.value()
    if isinstance(result, Exception):
        raise result
    return result
