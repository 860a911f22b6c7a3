"""Every rank holds a part of each tensor: weights, gradients and Adam's state (torch's FSDP2).

A layer's weights are gathered right before it computes and dropped right after, so forward and
backward are collective. All ranks must make equally many passes, and none can continue without
the others.
"""

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from dragoman.batches.collate import Batch, smallest_batch
from dragoman.distributed.group import Group
from dragoman.errors import RunError
from dragoman.model.loss import LossSums, Objective
from dragoman.sync.stopwatch import Mark


class Sharded:
    knows_exposed = False
    """Gradients and weights are sent throughout forward and backward."""
    last_ready: Mark | None = None

    def __init__(self, objective: Objective, group: Group) -> None:
        """Collective: every rank must call, with the same weights."""
        self._objective, self._group = objective, group
        model = objective.model
        mesh = init_device_mesh(group.device.type, (group.ranks,))
        # Keys and values of the source are projected before the decoder layer itself computes,
        # so that its weights have to be gathered on their own.
        look_ups = [layer.cross_attention.key_value for layer in model.decoder]
        for part in (*model.encoder, *look_ups, *model.decoder, objective):
            sharded = fully_shard(part, mesh=mesh)
            # The sum over ranks, as everywhere in this package; torch's own choice is the mean.
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)
        self._root = sharded

    def begin_step(self, missing_passes: int) -> None:
        """Clears the gradients of the previous step; makes the passes that only other ranks need.

        Collective: every rank must call.
        """
        self._objective.zero_grad()
        for _ in range(missing_passes):
            nothing = self.forward(smallest_batch().to(self._group.device), is_last=False)
            (nothing.smoothed * 0.0).backward()  # type: ignore[no-untyped-call]

    def forward(self, batch: Batch, is_last: bool) -> LossSums:
        """Returns the loss; its backward adds to the gradients, and sends them if `is_last`.

        Both are collective: every rank must call.
        """
        self._root.set_requires_gradient_sync(is_last)
        sums: LossSums = self._objective(batch)
        return sums

    def send_nothing(self) -> None:
        """Raises an error: unlike replicas, the others need this rank's weights to continue."""
        raise RunError(
            f"rank {self._group.rank} on {self._group.host} ran out of memory, and with "
            "training.sharding = full no rank can continue without it; start a new run with a "
            "lower training.micro_batch_tokens, or add ranks"
        )

    def close(self) -> None:
        """Nothing is left to end."""

    def renew(self) -> None:
        raise AssertionError("a sharded step is never retried")
