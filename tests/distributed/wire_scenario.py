"""Averages over real ranks by each kind of wire, beside a reference that one process computes."""

import hashlib
import math
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.distributed.group import Group
from dragoman.distributed.wire_bytes import WireKind, is_gathered, sent_bytes
from dragoman.sync.wire import average, four_bit

KINDS: tuple[WireKind, ...] = ("fp32", "bf16", "4bit")
SHAPES = {
    # As in a model: matrices, vectors, odd sizes, one that is constant and one that is empty.
    "model": [(301, 257), (512,), (0,), (7,), (1,), (333, 200), (128, 128), (1023,)],
    "one element": [(1,)],
    "fewer bytes than ranks": [(1,), (2,)],
}


def play(group: Group) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for kind in KINDS:
        for name, shapes in SHAPES.items():
            for weights in ([1.0] * group.ranks, [1000.0 + 321.0 * r for r in range(group.ranks)]):
                key = f"{kind}, {name}, {'equal' if weights[0] == 1.0 else 'unequal'} weights"
                seen[key] = _averaged(group, kind, shapes, weights)
    seen["non-finite"] = {
        f"{kind}, {bad}": _non_finite(group, kind, bad) for kind in KINDS for bad in ("nan", "inf")
    }
    seen["bad weights"] = [_error(group, [0.0] * group.ranks), _error(group, [1.0, -1.0, 1.0, 1.0])]
    return seen


def _averaged(
    group: Group, kind: WireKind, shapes: list[tuple[int, ...]], weights: list[float]
) -> dict[str, Any]:
    inputs = [_differences(rank, shapes) for rank in range(group.ranks)]
    with _handed_over() as counted:
        done = average(inputs[group.rank], kind, weights[group.rank])
    assert done.tensors is not None
    elements = sum(tensor.numel() for tensor in done.tensors)
    exact = sum(
        weight * each[0].double() for weight, each in zip(weights, inputs, strict=True)
    ) / sum(weights)
    return {
        "bits": _hash(done.tensors),
        "reference": _hash(_reference(kind, inputs, weights)),
        "shapes": [list(tensor.shape) for tensor in done.tensors],
        "weights": done.weights,
        "sent": done.sent_bytes,
        "counted": sum(counted),
        "formula": sent_bytes(kind, elements, len(shapes), group.ranks),
        # Of the first tensor, in its standard deviations.
        "error": float((exact - done.tensors[0]).square().mean().sqrt() / exact.std(correction=0))
        if exact.numel() > 1
        else 0.0,
    }


def _non_finite(group: Group, kind: WireKind, bad: str) -> dict[str, Any]:
    values = torch.ones(1000)
    if group.rank == 1:
        values[567] = float(bad)
    done = average([torch.ones(3), values], kind)
    again = average([torch.ones(3)], kind)  # ranks are still together
    assert again.tensors is not None
    return {
        "mean": done.tensors,
        "ranks": done.non_finite_ranks,
        "next": again.tensors[0].tolist(),
    }


def _error(group: Group, weights: list[float]) -> str:
    try:
        average([torch.ones(3)], "4bit", weights[group.rank])
    except ValueError as error:
        return str(error)
    return ""


def _differences(rank: int, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """What a rank has learned: partly the same as others; halved precision and strides included."""
    common, own = torch.Generator().manual_seed(99), torch.Generator().manual_seed(rank)
    made = [
        1e-3 * (torch.randn(s, generator=common) + torch.randn(s, generator=own)) for s in shapes
    ]
    made[-1] = made[-1].half()
    if len(made) > 5:
        made[1].fill_(0.1 * (rank + 1))
        made[5] = made[5].t().contiguous().t()
    return made


def _reference(kind: WireKind, inputs: list[list[Tensor]], weights: list[float]) -> list[Tensor]:
    """The mean in the order of the ranks; where it is scattered, rounded again slice by slice."""
    ranks = len(inputs)
    shares = [weight / max(weights) for weight in weights]
    sizes = [tensor.numel() for tensor in inputs[0]]
    again = not is_gathered(kind, sum(sizes), len(sizes), ranks)
    code_bytes = sum((size + 1) // 2 for size in sizes)
    slice_bytes = math.ceil(math.ceil(code_bytes / ranks) / 8) * 8
    means, first_byte = [], 0
    for each in zip(*inputs, strict=True):
        flat = [tensor.float().reshape(-1) for tensor in each]
        total = torch.zeros_like(flat[0])
        for values, share in zip(flat, shares, strict=True):
            total += _four_bit(values, share) if kind == "4bit" else _rounded(kind, values) * share
        total /= sum(shares)
        if again and kind == "4bit":
            owner = (first_byte + torch.arange(total.numel()) // 2) // slice_bytes
            for rank in range(ranks):
                total[owner == rank] = _four_bit(total[owner == rank])
        elif again:
            total = _rounded(kind, total)
        first_byte += (total.numel() + 1) // 2
        means.append(total)
    return means


def _four_bit(values: Tensor, share: float = 1.0) -> Tensor:
    codes = torch.empty(four_bit.code_bytes(values.numel()), dtype=torch.uint8)
    table, decoded = torch.empty(16), torch.empty_like(values)
    assert four_bit.encode(values, codes, table)
    four_bit.decode(codes, table * share, decoded)
    return decoded


def _rounded(kind: WireKind, values: Tensor) -> Tensor:
    return values.bfloat16().float() if kind == "bf16" else values


def _hash(tensors: list[Tensor]) -> str:
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()


@contextmanager
def _handed_over():
    """Bytes for other ranks, of each collective that is called."""
    counts: list[int] = []
    gather, scatter = dist.all_gather_single, dist.all_to_all_single

    def counted_gather(received, message, **named):
        counts.append((dist.get_world_size() - 1) * message.nbytes)
        return gather(received, message, **named)

    def counted_scatter(received, message, **named):
        sizes = named["input_split_sizes"]
        counts.append((sum(sizes) - sizes[dist.get_rank()]) * message.itemsize)
        return scatter(received, message, **named)

    with (
        patch.object(dist, "all_gather_single", counted_gather),
        patch.object(dist, "all_to_all_single", counted_scatter),
        # What is not counted must not be used.
        patch.object(dist, "all_reduce", None),
        patch.object(dist, "broadcast", None),
    ):
        yield counts
