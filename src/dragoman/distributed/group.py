"""Joining other ranks and talking to them, in JSON values and sums."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist

from dragoman.distributed.launchers import place
from dragoman.errors import DragomanError, LostPeerError, SaidElsewhere, UserError

# torch has no exception of its own for this on gloo.
_SIGNS_OF_A_LOST_PEER = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


@dataclass(frozen=True)
class Group:
    """All ranks of an attempt, seen from one of them. Alone, every collective is the identity."""

    rank: int
    ranks: int
    local_rank: int
    device: torch.device

    @property
    def leads(self) -> bool:
        return self.rank == 0

    @property
    def host(self) -> str:
        return socket.gethostname()

    def sums(self, values: list[float]) -> list[float]:
        """Sum over ranks, value by value, in fp64. Collective: every rank must call."""
        if self.ranks == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(total)
        return total.tolist()

    def broadcast(self, message: Any) -> Any:
        """Rank 0's message, of JSON values, on every rank. Collective: every rank must call."""
        if self.ranks == 1:
            return message
        content = json.dumps(message).encode() if self.leads else b""
        size = torch.tensor([len(content)])
        dist.broadcast(size, src=0)
        buffer = torch.empty(int(size.item()), dtype=torch.uint8)
        if self.leads:
            buffer.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        dist.broadcast(buffer, src=0)
        return json.loads(buffer.numpy().tobytes())

    def led(self, action: Callable[[], Any]) -> Any:
        """What `action` returns on rank 0, of JSON values; where it fails there, all ranks fail.

        Collective: every rank must call.
        """
        failure: DragomanError | None = None
        result = None
        if self.leads:
            try:
                result = action()
            except DragomanError as error:
                failure = error
        result, exit_code = self.broadcast([result, failure.exit_code if failure else 0])
        if failure:
            raise failure
        if exit_code:
            raise SaidElsewhere(exit_code)
        return result

    def gather(self, message: Any) -> list[Any]:
        """Every rank's message, of JSON values, on every rank. Collective: every rank must call."""
        if self.ranks == 1:
            return [message]
        content = torch.frombuffer(bytearray(json.dumps(message).encode()), dtype=torch.uint8)
        sizes = torch.zeros(self.ranks, dtype=torch.int64)
        sizes[self.rank] = len(content)
        dist.all_reduce(sizes)
        padded = torch.zeros(int(sizes.max()), dtype=torch.uint8)
        padded[: len(content)] = content
        gathered = [torch.empty_like(padded) for _ in range(self.ranks)]
        dist.all_gather(gathered, padded)
        return [
            json.loads(part[:size].numpy().tobytes())
            for part, size in zip(gathered, sizes.tolist(), strict=True)
        ]


@contextmanager
def join(device: Literal["auto", "cpu", "cuda"]) -> Iterator[Group]:
    """Be one of the ranks that a launcher has started, or the only one."""
    local_rank, started_by_launcher = place()
    chosen = pick_device(device, local_rank)
    if not started_by_launcher:
        yield Group(0, 1, 0, chosen)
        return
    # Messages between ranks are CPU tensors and travel over gloo, also where gradients use NCCL:
    # agreeing on something never waits for the GPU's queue.
    backend = "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo"
    dist.init_process_group(backend)
    group = Group(dist.get_rank(), dist.get_world_size(), local_rank, chosen)
    try:
        yield group
    except RuntimeError as error:
        if not any(sign in str(error) for sign in _SIGNS_OF_A_LOST_PEER):
            raise
        raise LostPeerError(
            f"rank {group.rank} on {group.host} has lost the connection to another rank; what "
            "that one says tells why, and the same command goes on from the newest checkpoint"
        ) from error
    finally:
        dist.destroy_process_group()


def pick_device(wanted: Literal["auto", "cpu", "cuda"], local_rank: int = 0) -> torch.device:
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if local_rank >= torch.cuda.device_count():
        raise UserError(
            f"worker {local_rank} of this host finds only {torch.cuda.device_count()} CUDA "
            "devices; start fewer workers or set training.device to cpu"
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device
