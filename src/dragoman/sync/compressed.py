"""Sums gradients over ranks in bf16 on the wire: half the bytes, and the same bits on all ranks.

A bucket is cut into one slice for each rank. Every rank gets its slice from all ranks, adds them up
in fp32 in the order of the ranks, rounds the sum once to bf16, and sends it to all. An all-reduce
in bf16 would round after every addition, the more often the more ranks there are.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from dragoman.sync.courier import Courier


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


class Bf16Sums:
    """Sums buffers one after the other in a thread of its own, while backward goes on."""

    def __init__(self, device: torch.device) -> None:
        """Collective: every rank must call."""
        self._channel = dist.new_group()
        self._courier = Courier(device, "bf16")

    def begin(self, buffer: Tensor) -> Future[Tensor]:
        """Returns the future sum, which will be in the buffer; it fails where the sum does."""

        def work() -> Tensor:
            sum_over_ranks(buffer, self._channel)
            return buffer

        return self._courier.begin(work)

    def close(self) -> None:
        if self._courier.close():
            # A group that outlives the others aborts the process when that ends.
            dist.destroy_process_group(self._channel)
