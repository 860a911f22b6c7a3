"""Every rank holds the whole model, and gradients are summed over an island during backward.

Torch's DDP does the work: it hands over gradients in buckets as soon as backward has made them.
All ranks send the same buckets in the same order, so a rank that cannot make its own still has to
send something, or the others would wait forever.
"""

import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import GradBucket  # torch.distributed has it, unknown to mypy
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from dragoman.batches.collate import Batch, smallest_batch
from dragoman.distributed.group import Group
from dragoman.model.loss import LossSums, Objective
from dragoman.sync.compressed import Bf16Sums
from dragoman.sync.islands import Islands
from dragoman.sync.memory import free_memory
from dragoman.sync.stopwatch import Mark, Stopwatch


class Replicas:
    knows_exposed = True

    def __init__(
        self,
        objective: Objective,
        group: Group,
        islands: Islands,
        in_bf16: bool = False,
        bucket_mb: float | None = None,
    ) -> None:
        """`in_bf16`: gradients travel as bf16; `bucket_mb`: in buckets of so much, or torch's.

        Collective: every rank must call; weights are taken from the first rank of the island.
        """
        self._objective, self._group = objective.to(group.device), group
        self._bucket_mb = bucket_mb
        self._ranks, self._channel = len(islands.members), islands.inside
        self._compressed: Bf16Sums | None = None
        if in_bf16 and self._ranks > 1:
            self._compressed = Bf16Sums(group.device)
        self._sent: list[Future[Tensor]] = []  # of the current step, in the order of the buckets
        self._stopwatch = Stopwatch(group.device)
        self.last_ready: Mark | None = None
        """The mark at which backward had made the last gradients of the current step; communication
        after it is not overlapped with computation. None if nothing has been sent."""
        self._rehearses = False
        self._parallel = self._tied_together(init_sync=True)

    def begin_step(self, missing_passes: int = 0) -> None:
        """Clears the gradients of the previous step; numbers of passes may differ between ranks."""
        self._objective.zero_grad()
        self._sent.clear()
        self.last_ready = None

    def forward(self, batch: Batch, is_last: bool) -> LossSums:
        """Returns the loss; its backward adds to the gradients, and sends them if `is_last`."""
        module = self._parallel or self._objective
        sums: LossSums
        if self._parallel and not is_last:
            with self._parallel.no_sync():
                sums = module(batch)
        else:
            sums = module(batch)
        return sums

    def send_nothing(self) -> None:
        """Takes part in the rest of a step whose backward this rank could not finish.

        What has not been sent is replaced by zeros. All ranks must then discard the gradients.
        """
        if self._parallel:
            buckets = self._parallel.reducer._get_zeros_like_grad_buckets()
            for bucket in buckets[len(self._sent) :]:
                self._send(None, bucket)
            for future in self._sent:
                future.wait()

    def renew(self) -> None:
        """Makes ready again after `send_nothing` on any rank. Collective: every rank must call."""
        self.begin_step()
        # A backward that was left halfway cannot be used again.
        self._parallel = None
        free_memory(self._group.device)
        self._parallel = self._tied_together(init_sync=False)

    def close(self) -> None:
        if self._compressed:
            self._compressed.close()

    def _tied_together(self, init_sync: bool) -> DistributedDataParallel | None:
        if self._ranks == 1:
            return None
        device = self._group.device
        parallel = DistributedDataParallel(
            self._objective,
            device_ids=[device] if device.type == "cuda" else None,
            process_group=self._channel,
            init_sync=init_sync,
            bucket_cap_mb=self._bucket_mb,
            gradient_as_bucket_view=True,
            forward_sync_buffers=False,
        )
        parallel.register_comm_hook(None, self._send)
        self._rehearse(parallel)
        return parallel

    def _rehearse(self, parallel: DistributedDataParallel) -> None:
        """Lets DDP see the order in which backward makes gradients, before the first step.

        It cuts its buckets by that order and would otherwise do so after the first step. Sums of
        three or more ranks depend on the cut, and a resumed run is to repeat them bit for bit.
        """
        self._rehearses = True
        parallel(smallest_batch().to(self._group.device)).smoothed.backward()
        self._rehearses = False
        parallel.reducer._rebuild_buckets()
        self.begin_step()

    # Torch compares these annotations with its own.
    def _send(self, state: object, bucket: GradBucket) -> Future[Tensor]:
        """Sends a bucket of gradients to the other ranks; every gradient passes here."""
        if self._rehearses:
            at_once: Future[Tensor] = Future()
            at_once.set_result(bucket.buffer())
            return at_once
        self.last_ready = self._stopwatch.mark()
        travelling: Future[Tensor]
        if self._compressed:
            travelling = self._compressed.begin(bucket.buffer())
        else:
            work = dist.all_reduce(bucket.buffer(), group=self._channel, async_op=True)
            assert work
            travelling = work.get_future().then(lambda done: done.value()[0])
        self._sent.append(travelling)
        return travelling
