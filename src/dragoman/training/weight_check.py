"""Whether all ranks hold the same weights: compared by hash, now and then.

Replicas start equal and take equal steps, so they differ only where something is broken: a bit of
memory, a kernel, a driver, a rank that has missed an update. Nothing else would show it. Where
ranks take steps of their own, the common weights are compared.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import torch
from torch import Tensor

from dragoman.config import TrainingSettings
from dragoman.distributed.consensus import odd_ranks, raise_on_all_ranks
from dragoman.distributed.group import Group
from dragoman.errors import NamedRank, WeightsDifferError
from dragoman.telemetry.events import Incident
from dragoman.telemetry.record.writer import EventWriter

# Elements that are hashed at once: 6 MB of temporary memory, and 0.34 s for the 61 million weights
# of transformer-base on one core; with a million at once 75 MB and 0.41 s (2026-11).
CHUNK = 1 << 16
NAMED_TENSORS = 3

# Odd constants with well mixed bits (of SplitMix64), as signed 64-bit numbers.
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX = 0xBF58476D1CE4E5B9 - (1 << 64)


class WeightCheck:
    """Compares the ranks' weights, and remembers when they were last equal."""

    def __init__(
        self,
        tensors: Callable[[], Mapping[str, Tensor]],
        group: Group,
        settings: TrainingSettings,
        events: EventWriter,
    ) -> None:
        self._tensors, self._group, self._events = tensors, group, events
        has_replicas = group.ranks > 1 and settings.sharding == "none"
        self._every_steps = settings.compare_every_steps if has_replicas else 0
        self._equal_at: int | None = None

    def is_due(self, step: int) -> bool:
        return self._every_steps > 0 and step % self._every_steps == 0

    def check(self, step: int) -> None:
        """Stops all ranks where they hold different weights. Collective: every rank must call."""
        if self._every_steps == 0:
            return
        hashes = tensor_hashes(self._tensors())
        digest = hashlib.sha256(json.dumps(hashes).encode()).hexdigest()[:16]
        if len(set(self._group.gather(digest))) > 1:
            self._stop_all(step, hashes)
        self._equal_at = step

    def _stop_all(self, step: int, hashes: dict[str, int]) -> NoReturn:
        hosts = self._group.gather(self._group.host)
        hashes_by_rank = self._group.gather(hashes)
        odd = odd_ranks(hashes_by_rank) or range(self._group.ranks)
        difference = described(hosts, hashes_by_rank, self._equal_at)
        self._events.emit(Incident(step, "weights-differ", difference, ranks=tuple(odd)))
        raise_on_all_ranks(
            self._group,
            WeightsDifferError(
                f"step {step:,}: {difference}; move the checkpoints away that were saved since "
                "then and start the same command again, and if it comes back, suspect that host's "
                "memory",
                culprit=NamedRank(odd[0], hosts[odd[0]]) if len(odd) == 1 else None,
            ),
        )


def tensor_hashes(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Returns 64 bits for each tensor, exact whatever the device and its order of sums."""
    sums = [_hash(tensor.detach()) for tensor in tensors.values()]
    # One copy from the device for all of them.
    return dict(zip(tensors, torch.stack(sums).tolist(), strict=True))


def _hash(tensor: Tensor) -> Tensor:
    """Returns the sum over all elements of their bits mixed with their position, modulo 2^64."""
    if tensor.dtype is not torch.float32:
        raise TypeError(f"weights are kept in fp32, and this tensor is {tensor.dtype}")
    bits = tensor.contiguous().view(-1).view(torch.int32)
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for begin in range(0, len(bits), CHUNK):
        part = bits[begin : begin + CHUNK]
        mixed = torch.arange(begin, begin + len(part), device=tensor.device).mul_(_SPREAD)
        mixed.add_(part).mul_(_MIX)
        # Without this the sum would be linear, and equal changes of two weights could cancel.
        mixed.bitwise_xor_(mixed >> 29).mul_(_SPREAD)
        total += mixed.sum()
    return total


def described(
    hosts: Sequence[str], hashes: Sequence[Mapping[str, int]], equal_at: int | None
) -> str:
    """Returns who holds other weights, since when and in which tensors.

    `hosts` and `hashes` are of each rank; not all hashes are equal.
    """
    odd = odd_ranks(hashes)
    ranks = range(len(hosts)) if odd is None else odd
    usual = next(rank for rank in range(len(hosts)) if odd is None or rank not in odd)
    names = [
        name
        for name in hashes[usual]
        if any(hashes[rank][name] != hashes[usual][name] for rank in ranks)
    ]
    who = ", ".join(str(NamedRank(rank, hosts[rank])) for rank in ranks)
    what = "hold different weights" if odd is None else "has other weights than the rest"
    if odd and len(odd) > 1:
        what = "have other weights than the rest"
    shown = ", ".join(names[:NAMED_TENSORS])
    more = f" and {len(names) - NAMED_TENSORS} more" if len(names) > NAMED_TENSORS else ""
    since = "since the start" if equal_at is None else f"since after step {equal_at:,}"
    return f"{who} {what}, {since}: {shown}{more} ({len(names)} of {len(hashes[usual])} tensors)"
