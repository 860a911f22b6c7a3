"""Joins the other ranks and communicates with them, in JSON values and sums."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.distributed.distributed_c10d import _set_pg_timeout

from dragoman.distributed.interfaces import bind_to_interface_towards
from dragoman.distributed.launchers import Place, host_name, place
from dragoman.distributed.parent import ParentWatch
from dragoman.distributed.pulse import LONG_PATIENCE_S, ONE_HOST_SILENT_S, SILENT_S, Pulse
from dragoman.distributed.seal import Seal
from dragoman.errors import DragomanError, FailedElsewhereError, LostPeerError, UserError

# torch has no exception of its own for this on gloo.
_SIGNS_OF_A_LOST_PEER = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Timed out waiting",
    "Connection refused",
)
STORE_TIMEOUT_S = 5.0
START_S = 180.0
"""How long ranks of one start may take to meet: a host may import torch from a cold disk."""


@dataclass(frozen=True)
class Group:
    """All ranks of an attempt, seen from one of them. Alone, every collective is the identity."""

    rank: int
    ranks: int
    local_rank: int
    device: torch.device
    pulse: Pulse = field(default_factory=lambda: Pulse(0, 1, host_name()))

    @property
    def leads(self) -> bool:
        return self.rank == 0

    @property
    def host(self) -> str:
        return self.pulse.host

    def sums(self, values: list[float]) -> list[float]:
        """Returns sums over ranks, value by value, in fp64. Collective: every rank must call."""
        if self.ranks == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(total)
        return total.tolist()

    def broadcast(self, message: Any) -> Any:
        """Returns rank 0's message, of JSON values. Collective: every rank must call."""
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

    def on_rank_0(self, action: Callable[[], Any]) -> Any:
        """Returns what `action` returns on rank 0, of JSON values; all fail where it fails there.

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
            raise FailedElsewhereError(exit_code)
        return result

    def gather(self, message: Any) -> list[Any]:
        """Returns every rank's message, of JSON values. Collective: every rank must call."""
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
    """Joins the ranks that a launcher has started; yields the group, or one of a single rank."""
    found = place()
    chosen = pick_device(device, found.local_rank)
    host = host_name()
    if not found.started_by_launcher:
        yield Group(0, 1, 0, chosen, Pulse(0, 1, host))
        return
    parent = ParentWatch()
    seal = Seal(found.secret)
    # Messages between ranks are CPU tensors and travel over gloo, also where gradients use NCCL:
    # consensus never waits for the GPU's queue.
    backend = "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo"
    try:
        kept = _meet(backend, found, seal)
    except (RuntimeError, ValueError) as error:
        what = str(error).partition("\n")[0]
        raise LostPeerError(
            f"rank {found.rank} on {host} could not meet the other ranks: {what}; the same command "
            "tries again"
        ) from error
    # Heartbeats have a connection of their own: the first one may be busy waiting.
    pulse = Pulse(
        found.rank,
        found.ranks,
        host,
        open_store(found.address, found.port, seal),
        seal,
        _set_timeout,
        ONE_HOST_SILENT_S if found.is_one_host else SILENT_S,
    )
    _set_timeout(LONG_PATIENCE_S)
    _wait_for_all()  # now every rank has a pulse
    pulse.begin()
    parent.allow_saving()
    try:
        yield Group(found.rank, found.ranks, found.local_rank, chosen, pulse)
    except BaseException as error:
        failure = reason_of(error, pulse)
        code = failure.exit_code if isinstance(failure, DragomanError) else 1
        pulse.close(str(failure) or type(failure).__name__, code)
        if failure is error:
            raise
        raise failure from error
    else:
        # Some launchers end all ranks as soon as one has ended, and another may still be saving.
        _wait_for_all()
        pulse.close()
    finally:
        dist.destroy_process_group()
        del kept  # which ends the store, where this rank is the one that keeps it


def _meet(backend: str, found: Place, seal: Seal) -> TCPStore | None:
    """Joins the other ranks, through whichever store the launcher has or expects us to have.

    Returns the store that this rank must keep.
    """
    # An agent of ours starts all ranks at the same moment; others may have a queue.
    patience_s = START_S if found.launcher == "dragoman" else LONG_PATIENCE_S
    patience = timedelta(seconds=patience_s)
    if found.launcher == "torchrun":
        bind_to_interface_towards(found.address, found.port)
        dist.init_process_group(backend, timeout=patience)
        return None
    kept = None
    if found.launcher != "dragoman":
        bind_to_interface_towards(found.address, found.port)
        kept = _keep_store(found) if found.rank == 0 else None
    dist.init_process_group(
        backend,
        store=open_store(found.address, found.port, seal, patience_s),
        rank=found.rank,
        world_size=found.ranks,
        timeout=patience,
    )
    return kept


def open_store(
    address: str, port: int, seal: Seal, timeout_s: float = STORE_TIMEOUT_S
) -> PrefixStore:
    """Returns a connection to the store; keys of other starts are out of reach."""
    store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=timeout_s))
    return PrefixStore(f"dragoman/{seal.prefix}", store)


def _keep_store(found: Place) -> TCPStore:
    """Returns the store, kept by rank 0, for ranks that a launcher without one has started.

    Bound to one address: left to itself, torch would listen on all interfaces.
    """
    try:
        socket.getaddrinfo(found.address, found.port)
    except socket.gaierror as error:
        raise UserError(
            f"{found.address}, the host of rank 0, has a name that is not known here; set "
            "MASTER_ADDR to its address, on all hosts"
        ) from error
    try:
        listening = socket.create_server((found.address, found.port))
    except OSError as error:
        raise UserError(
            f"port {found.port} of {found.address} cannot be used ({error.strerror}); free it, or "
            "set MASTER_ADDR to an address of rank 0's host, and MASTER_PORT to another port"
        ) from error
    return TCPStore(
        found.address,
        found.port,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listening.detach(),
    )


def _wait_for_all() -> None:
    """Waits for all ranks over gloo, whatever the gradients use."""
    dist.all_reduce(torch.zeros(1))


def reason_of(error: BaseException, pulse: Pulse) -> BaseException:
    """Returns the cause of a broken connection to another rank; other errors unchanged."""
    if not isinstance(error, RuntimeError) or not any(
        sign in str(error) for sign in _SIGNS_OF_A_LOST_PEER
    ):
        return error
    return pulse.find_lost_rank()


def _set_timeout(seconds: float) -> None:
    # torch has no public way to change the timeout of a group.
    _set_pg_timeout(timedelta(seconds=seconds))


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
