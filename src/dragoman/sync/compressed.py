"""Sums gradients over ranks in bf16 on the wire: half the bytes, and the same bits on all ranks.

A bucket is cut into one slice for each rank. Every rank gets its slice from all ranks, adds them up
in fp32 in the order of the ranks, rounds the sum once to bf16, and sends it to all. An all-reduce
in bf16 would round after every addition, the more often the more ranks there are.
"""

import queue
import threading
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future


def sum_over_ranks(buffer: Tensor, channel: dist.ProcessGroup | None) -> None:
    """Replaces the buffer by its sum over the ranks of `channel`, rounded to bf16.

    Collective: every rank of it must call, with a buffer of the same length.
    """
    ranks = dist.get_world_size(channel)
    slice_length = -(-buffer.numel() // ranks)
    sent = buffer.new_zeros(ranks * slice_length, dtype=torch.bfloat16)
    sent[: buffer.numel()] = buffer
    received = torch.empty_like(sent)
    # As bytes, since not every backend knows bf16, and nothing is computed on the way.
    dist.all_to_all_single(received.view(torch.uint8), sent.view(torch.uint8), group=channel)
    slices = received.view(ranks, slice_length)
    total = slices[0].float()
    for rank in range(1, ranks):
        total += slices[rank]
    rounded = total.bfloat16()
    gathered = sent  # which has been sent
    dist.all_gather(
        [*gathered.view(torch.uint8).chunk(ranks)], rounded.view(torch.uint8), group=channel
    )
    buffer.copy_(gathered[: buffer.numel()])


END_S = 5.0
"""How long the end of a run waits for a sum that is on its way; after a failure it may be stuck."""


class _Task(NamedTuple):
    buffer: Tensor
    made: torch.cuda.Event | None
    """When the device has made what is in the buffer; None on a CPU, where it has."""
    done: Future[Tensor | Exception]


class Bf16Sums:
    """Sums buffers one after the other in a thread of its own, while backward goes on.

    One thread, so that all ranks sum them in the same order. It has a process group of its own,
    since other messages must not come in between.
    """

    def __init__(self, device: torch.device) -> None:
        """Collective: every rank must call."""
        self._device = device
        self._channel = dist.new_group()
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work_off, name="bf16", daemon=True)
        self._thread.start()

    def begin(self, buffer: Tensor) -> Future[Tensor]:
        """Returns the future sum, which will be in the buffer; it fails where the sum does."""
        made = None
        if self._stream:
            made = torch.cuda.Event()  # type: ignore[no-untyped-call]
            made.record(torch.cuda.current_stream(self._device))
        done: Future[Tensor | Exception] = Future(devices=[self._device] if self._stream else None)
        self._tasks.put(_Task(buffer, made, done))
        # An exception that is set on a future does not reach DDP, which waits outside of Python;
        # one that is raised in a callback does.
        return done.then(_result)

    def close(self) -> None:
        """Ends the thread; nothing may be on its way, unless the run has failed."""
        self._tasks.put(None)
        self._thread.join(timeout=END_S)
        if not self._thread.is_alive():
            # A group that outlives the others aborts the process when that ends.
            dist.destroy_process_group(self._channel)

    def _work_off(self) -> None:
        with torch.cuda.stream(self._stream):  # of None, it does nothing
            while task := self._tasks.get():
                try:
                    if self._stream and task.made:
                        self._stream.wait_event(task.made)
                    sum_over_ranks(task.buffer, self._channel)
                except Exception as error:  # raised again where the sum is waited for
                    task.done.set_result(error)
                else:
                    task.done.set_result(task.buffer)


def _result(done: Future[Tensor | Exception]) -> Tensor:
    result = done.value()
    if isinstance(result, Exception):
        raise result
    return result
